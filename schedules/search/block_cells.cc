// Repeats and compacts V-shaped blocks.
#include "schedules/search/block_cells.h"

#include <algorithm>
#include <array>
#include <set>

#include "schedules/search/microbatch_way.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kCellPeriod = 6;
constexpr std::int32_t kTokens = 2 * kSteps;
constexpr std::int32_t kStrides = 5;

/// The tokens of a micro-batch's passes in order, then W1 and W0.
constexpr std::array<Token, 6> kTokenOfPass{0, 3, 4, 1, 5, 2};

bool moves_away(Token token) { return token == 0 || token == 4 || token == 5; }

/// Places both W; false if two passes are in the same slot.
bool add_weights(std::array<std::int32_t, 6>& row) {
  unsigned taken = 0;
  for (int pass = 0; pass < 4; ++pass) {
    if (taken >> row[pass] & 1) return false;
    taken |= 1u << row[pass];
  }
  for (int pass = 4; pass < 6; ++pass) {
    row[pass] = row[pass - 2];
    while (taken >> row[pass] & 1) row[pass] = (row[pass] + 1) % kCellPeriod;
    taken |= 1u << row[pass];
  }
  return true;
}

/// Appends the rank after the last one, with F0 and I1 `stride` slots later; false if slots
/// collide.
bool add_rank(BlockRows& rows, std::int32_t stride) {
  std::array<std::int32_t, 6> row = rows.back();
  for (int pass = 0; pass < 4; ++pass)
    row[pass] = (row[pass] + (pass % 2 == 0 ? stride : kCellPeriod - 1)) % kCellPeriod;
  if (!add_weights(row)) return false;
  rows.push_back(row);
  return true;
}

/// The slot of each op of micro-batch 0: the first slot after the same op of the previous rank.
struct FirstSlots {
  std::vector<std::array<std::int32_t, 6>> of_pass;  ///< [rank]

  explicit FirstSlots(const BlockRows& rows) : of_pass(rows.size()) {
    std::int32_t slot = 0;
    const auto next = [&](std::int32_t residue) {
      slot += (residue - slot % kCellPeriod + kCellPeriod) % kCellPeriod;
      return slot++;
    };
    for (std::size_t pass = 0; pass < 4; ++pass)
      for (std::size_t step = 0; step < rows.size(); ++step) {
        const std::size_t rank = pass % 2 == 0 ? step : rows.size() - 1 - step;
        const std::int32_t own = of_pass[rank][pass] = next(rows[rank][pass]);
        if (pass < 2) continue;
        const std::int32_t wait =
            (rows[rank][pass + 2] - own % kCellPeriod + kCellPeriod) % kCellPeriod;
        of_pass[rank][pass + 2] = own + wait;
      }
  }
};

}  // namespace

std::vector<BlockRows> strided_block_rows(std::int32_t ranks) {
  std::set<BlockRows> found;
  for (int first = 0; first < kStrides * kStrides * kStrides; ++first) {
    std::array<std::int32_t, 6> row{0,
                                    1 + first % kStrides,
                                    1 + first / kStrides % kStrides,
                                    1 + first / (kStrides * kStrides),
                                    0,
                                    0};
    if (!add_weights(row)) continue;
    for (std::int32_t near = 1; near <= kStrides; ++near)
      for (std::int32_t far = 1; far <= near; ++far)
        for (std::int32_t change = 1; change < ranks; ++change) {
          BlockRows rows{row};
          bool repeats = true;
          for (std::int32_t rank = 0; repeats && rank + 1 < ranks; ++rank)
            repeats = add_rank(rows, rank < change ? near : far);
          if (repeats) found.insert(std::move(rows));
        }
  }
  return {found.begin(), found.end()};
}

BlockCells repeat_block(const BlockRows& rows, std::int32_t microbatches) {
  const FirstSlots first(rows);
  std::int32_t last = 0;
  for (const auto& slots : first.of_pass)
    last = std::max(last, *std::max_element(slots.begin(), slots.end()));
  BlockCells cells(rows.size(), std::vector<Token>(
                                    static_cast<std::size_t>(last + 1 + kCellPeriod * microbatches),
                                    kEmptyCell));
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    for (std::size_t pass = 0; pass < kTokenOfPass.size(); ++pass)
      for (std::int32_t n = 0; n < microbatches; ++n)
        cells[rank][static_cast<std::size_t>(first.of_pass[rank][pass] + kCellPeriod * n)] =
            kTokenOfPass[pass];
  return cells;
}

std::vector<std::int32_t> peaks_of(const BlockCells& cells) {
  std::vector<std::int32_t> peaks;
  for (const std::vector<Token>& rank : cells) {
    std::int32_t held = 0;
    std::int32_t peak_so_far = 0;
    for (const Token token : rank) {
      if (token == kEmptyCell) continue;
      if (step_of(token) == Step::kForward) peak_so_far = std::max(peak_so_far, ++held);
      if (step_of(token) == Step::kWeightGrad) --held;
    }
    peaks.push_back(peak_so_far);
  }
  return peaks;
}

std::int32_t peak_of(const BlockCells& cells) {
  const std::vector<std::int32_t> peaks = peaks_of(cells);
  return *std::max_element(peaks.begin(), peaks.end());
}

namespace {

/// The slots of each token's micro-batches that have been placed so far.
class Placed {
 public:
  explicit Placed(std::size_t ranks) : slots_(ranks), free_(ranks, 0) {}

  /// The slot of a rank's next op with this token; empty if its input has not been placed.
  std::optional<std::int32_t> next_slot(std::size_t rank, Token token) const {
    const std::optional<VOp> input = input_of(VOp{rank, token}, slots_.size());
    if (!input) return free_[rank];
    const std::size_t next = at(rank, token).size();
    const std::vector<std::int32_t>& inputs = at(input->rank, input->token);
    if (inputs.size() <= next) return std::nullopt;
    return std::max(free_[rank], inputs[next] + 1);
  }

  void place(std::size_t rank, Token token, std::int32_t slot) {
    slots_[rank][token].push_back(slot);
    free_[rank] = slot + 1;
  }

  const std::vector<std::int32_t>& at(std::size_t rank, Token token) const {
    return slots_[rank][token];
  }
  std::int32_t end() const { return *std::max_element(free_.begin(), free_.end()); }

 private:
  std::vector<std::array<std::vector<std::int32_t>, kTokens>> slots_;
  std::vector<std::int32_t> free_;
};

}  // namespace

std::optional<BlockCells> compacted(const BlockCells& cells) {
  Placed placed(cells.size());
  std::size_t width = 0;
  for (const std::vector<Token>& rank : cells) width = std::max(width, rank.size());
  for (std::size_t slot = 0; slot < width; ++slot)
    for (const bool away : {true, false})
      for (std::size_t step = 0; step < cells.size(); ++step) {
        const std::size_t rank = away ? step : cells.size() - 1 - step;
        const Token token = slot < cells[rank].size() ? cells[rank][slot] : kEmptyCell;
        if (token == kEmptyCell || moves_away(token) != away) continue;
        const std::optional<std::int32_t> to = placed.next_slot(rank, token);
        if (!to) return std::nullopt;
        placed.place(rank, token, *to);
      }
  BlockCells packed(cells.size(),
                    std::vector<Token>(static_cast<std::size_t>(placed.end()), kEmptyCell));
  for (std::size_t rank = 0; rank < cells.size(); ++rank)
    for (Token token = 0; token < kTokens; ++token)
      for (const std::int32_t slot : placed.at(rank, token))
        packed[rank][static_cast<std::size_t>(slot)] = token;
  return packed;
}

bool is_complete(const BlockCells& cells, std::int32_t microbatches) {
  for (const std::vector<Token>& rank : cells)
    for (Token token = 0; token < kTokens; ++token)
      if (std::count(rank.begin(), rank.end(), token) != microbatches) return false;
  return compacted(cells).has_value();
}

TokenOrder order_of(const BlockCells& cells) {
  TokenOrder order;
  for (const std::vector<Token>& rank : cells)
    std::copy_if(rank.begin(), rank.end(), std::back_inserter(order),
                 [](Token token) { return token != kEmptyCell; });
  return order;
}

}  // namespace bubblescope::schedules
