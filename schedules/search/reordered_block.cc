// Repeats and compacts the block, rewrites its warm-up and cool-down, and fills the empty cells.
#include "schedules/search/reordered_block.h"

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "schedules/search/microbatch_way.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kTokens = 2 * kSteps;
constexpr Token kF0 = 0;
constexpr Token kI0 = 1;
constexpr Token kW0 = 2;
constexpr Token kF1 = 3;
constexpr Token kI1 = 4;
constexpr Token kW1 = 5;

using Counts = std::array<std::int32_t, kTokens>;
using Row = std::vector<Token>;

void set(Row& row, std::int32_t slot, Token token) {
  if (static_cast<std::size_t>(slot) >= row.size())
    row.resize(static_cast<std::size_t>(slot) + 1, kEmptyCell);
  row[static_cast<std::size_t>(slot)] = token;
}

void make_even(BlockCells& cells) {
  std::size_t width = 0;
  for (const Row& row : cells) width = std::max(width, row.size());
  for (Row& row : cells) row.resize(width, kEmptyCell);
}

/// Rewrites the ops before a rank's first I0: F0's until the F1's return, then F0 and F1 in turn,
/// then I1, its W1 and a forward in turn. No rank holds more than `peak`.
void write_warm_up(Row& row, std::int32_t rank, std::int32_t ranks, std::int32_t peak) {
  Counts left{};
  for (Token& token : row) {
    if (token == kI0) break;
    if (token != kEmptyCell) ++left[token];
    token = kEmptyCell;
  }
  const std::int32_t back = std::min(rank + 1, peak / 2);
  std::int32_t away_first = std::min(peak - back, left[kF0]);
  std::int32_t back_first = std::min(back, left[kF1]);
  std::int32_t slot = rank;
  const auto put = [&](Token token, std::int32_t& budget) {
    if (budget > 0 && left[token] > 0) {
      set(row, slot, token);
      --budget;
      --left[token];
    }
    ++slot;
  };
  for (std::int32_t turn = 0; turn < 2 * (ranks - 1 - rank); ++turn) put(kF0, away_first);
  for (std::int32_t turn = 0; turn <= rank; ++turn) {
    put(kF0, away_first);
    put(kF1, back_first);
  }
  while (left[kF0] + left[kF1] + left[kI1] + left[kW1] > 0) {
    std::int32_t any = kTokens;
    put(kI1, any);
    put(kW1, any);
    put(left[kF1] > 0 ? kF1 : kF0, any);
  }
}

/// Removes the last `count` of a token from a row and returns how many there were.
std::int32_t take_last(Row& row, Token token, std::int32_t count) {
  std::int32_t taken = 0;
  for (auto cell = row.rbegin(); cell != row.rend() && taken < count; ++cell)
    if (*cell == token) {
      *cell = kEmptyCell;
      ++taken;
    }
  return taken;
}

/// Removes W's from the tail: at least as many as gradients were removed, and `peak` in total.
void take_weights(Row& row, std::int32_t first, std::int32_t second, std::int32_t peak) {
  std::int32_t taken1 = 0;
  std::int32_t taken0 = 0;
  for (auto cell = row.rbegin(); cell != row.rend(); ++cell) {
    if (taken1 >= first && taken0 >= second && taken1 + taken0 >= peak) return;
    if (*cell != kW0 && *cell != kW1) continue;
    ++(*cell == kW1 ? taken1 : taken0);
    *cell = kEmptyCell;
  }
}

/// Puts the missing W's into the empty cells after the last W, those of chunk 1 first.
void restore_weights(Row& row) {
  std::int32_t last = -1;
  for (std::size_t slot = 0; slot < row.size(); ++slot)
    if (row[slot] == kW0 || row[slot] == kW1) last = static_cast<std::int32_t>(slot);
  std::int32_t due1 = 0;
  std::int32_t due0 = 0;
  for (std::size_t slot = 0; slot < row.size(); ++slot) {
    Token& cell = row[slot];
    if (cell == kI1) ++due1;
    if (cell == kI0) ++due0;
    if (cell == kW1) --due1;
    if (cell == kW0) --due0;
    if (cell != kEmptyCell || static_cast<std::int32_t>(slot) <= last || due1 + due0 <= 0) continue;
    cell = due1 > 0 ? kW1 : kW0;
    --(due1 > 0 ? due1 : due0);
  }
  for (; due1 > 0; --due1) row.push_back(kW1);
  for (; due0 > 0; --due0) row.push_back(kW0);
}

/// Rewrites the ops after the last F1: I1's and I0's in turn, as early as their inputs allow.
/// Returns false if they do not fit.
bool write_cool_down(BlockCells& cells, std::int32_t microbatches) {
  const auto ranks = static_cast<std::int32_t>(cells.size());
  const std::int32_t peak = peak_of(cells);
  if (peak > 2 * ranks) return false;
  const std::int32_t max0 = std::min((peak + 1) / 2, microbatches);
  const std::int32_t max1 = std::min(peak - max0, microbatches);
  const Row& first_row = cells.front();
  const auto last_forward = std::find(first_row.rbegin(), first_row.rend(), kF1);
  const auto start = static_cast<std::int32_t>(first_row.rend() - last_forward) - 1;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    Row& row = cells[static_cast<std::size_t>(rank)];
    const std::int32_t taken1 = take_last(row, kI1, std::min(rank + 1, max1));
    const std::int32_t taken0 = take_last(row, kI0, max0);
    take_weights(row, taken1, taken0, peak);
    const auto put = [&](std::int32_t slot, Token token) {
      if (slot < 0) return false;
      const auto at = static_cast<std::size_t>(slot);
      if (token == kI0 && at < row.size() && row[at] != kEmptyCell) return false;
      set(row, slot, token);
      return true;
    };
    for (std::int32_t back = 0; back < taken0; ++back)
      if (!put(start - rank + 2 * ranks - 2 * back, kI0)) return false;
    for (std::int32_t back = 0; back < taken1; ++back)
      if (!put(start + 1 + rank - 2 * back, kI1)) return false;
  }
  make_even(cells);
  for (Row& row : cells) restore_weights(row);
  return true;
}

/// Fills empty cells in order, each with the rank's next op that could run there.
class Filling {
 public:
  explicit Filling(BlockCells& cells) : cells_(cells), ranks_(cells.size()), peak_(peak_of(cells)) {
    for (std::size_t rank = 0; rank < cells.size(); ++rank)
      for (const Token token : cells[rank])
        if (token != kEmptyCell) ++ranks_[rank].left[token];
  }

  void fill() {
    for (std::size_t slot = 0; slot < cells_.front().size(); ++slot)
      for (std::size_t rank = 0; rank < cells_.size(); ++rank) {
        Token& cell = cells_[rank][slot];
        if (cell == kEmptyCell) pull_forward(rank, slot);
        if (cell != kEmptyCell) note(rank, slot, cell);
      }
  }

 private:
  struct RankState {
    Counts left{};
    std::array<std::vector<std::size_t>, kTokens> slots;
    std::int32_t held = 0;
  };

  void note(std::size_t rank, std::size_t slot, Token token) {
    RankState& state = ranks_[rank];
    --state.left[token];
    state.slots[token].push_back(slot);
    if (step_of(token) == Step::kForward) ++state.held;
    if (step_of(token) == Step::kWeightGrad) --state.held;
  }

  /// Moves the first op that could run in this slot forward. An F is only moved if the rank stays
  /// within the peak.
  void pull_forward(std::size_t rank, std::size_t slot) {
    const RankState& state = ranks_[rank];
    unsigned open = 0;
    for (Token token = 0; token < kTokens; ++token)
      if (state.left[token] > 0) open |= 1u << token;
    std::int32_t held = state.held;
    std::int32_t peak_so_far = state.held;
    for (std::size_t later = slot + 1; open != 0 && later < cells_[rank].size(); ++later) {
      const Token token = cells_[rank][later];
      if (token == kEmptyCell) continue;
      const std::int32_t max_before = peak_so_far;
      if (step_of(token) == Step::kForward) peak_so_far = std::max(peak_so_far, ++held);
      if (step_of(token) == Step::kWeightGrad) --held;
      if (!(open >> token & 1)) continue;
      open &= ~(1u << token);
      if (step_of(token) == Step::kForward && max_before >= peak_) continue;
      if (!is_ready(rank, slot, token)) continue;
      std::swap(cells_[rank][slot], cells_[rank][later]);
      return;
    }
  }

  bool is_ready(std::size_t rank, std::size_t slot, Token token) const {
    const std::optional<VOp> input = input_of(VOp{rank, token}, ranks_.size());
    if (!input) return true;
    const std::size_t next = ranks_[rank].slots[token].size();
    const std::vector<std::size_t>& inputs = ranks_[input->rank].slots[input->token];
    return inputs.size() > next && inputs[next] < slot;
  }

  BlockCells& cells_;
  std::vector<RankState> ranks_;
  std::int32_t peak_;
};

/// Sorts the W's in the order of their I's. Returns false if an I has no W.
bool sort_weights(Row& row) {
  std::deque<Token> due;
  for (Token& token : row) {
    if (token == kI0 || token == kI1) due.push_back(static_cast<Token>(token + 1));
    if (token != kW0 && token != kW1) continue;
    if (due.empty()) return false;
    token = due.front();
    due.pop_front();
  }
  return true;
}

void drop_extra(BlockCells& cells, std::int32_t microbatches) {
  for (Row& row : cells) {
    Counts count{};
    for (Token& token : row)
      if (token != kEmptyCell && ++count[token] > microbatches) token = kEmptyCell;
  }
}

/// Delays W's of the warm-up on ranks that hold less than the peak.
void delay_weights(BlockCells& cells, std::int32_t peak) {
  const std::vector<std::int32_t> peaks = peaks_of(cells);
  const std::int32_t least = *std::min_element(peaks.begin(), peaks.end());
  for (std::size_t rank = 0; rank < cells.size(); ++rank) {
    Row later;
    for (Token& token : cells[rank]) {
      if (peaks[rank] + static_cast<std::int32_t>(later.size()) >= peak) break;
      if (token != kW0 && token != kW1) continue;
      later.push_back(token);
      token = kEmptyCell;
    }
    later.resize(static_cast<std::size_t>(std::max(0, peak - least)), kEmptyCell);
    cells[rank].insert(cells[rank].end(), later.begin(), later.end());
  }
}

std::optional<BlockCells> with_new_warm_up(const BlockRows& rows, std::int32_t microbatches) {
  const auto ranks = static_cast<std::int32_t>(rows.size());
  const BlockCells repeated = repeat_block(rows, microbatches);
  const std::int32_t peak = peak_of(repeated);
  if (peak > 2 * ranks) return std::nullopt;
  std::optional<BlockCells> cells = compacted(repeated);
  if (!cells) return std::nullopt;
  const std::int32_t own_peak = peak_of(*cells);
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    write_warm_up((*cells)[static_cast<std::size_t>(rank)], rank, ranks, own_peak);
  cells = compacted(*cells);
  if (!cells || peak_of(*cells) > peak) return std::nullopt;
  return cells;
}

std::optional<TokenOrder> with_new_cool_down(BlockCells cells, std::int32_t microbatches) {
  const std::int32_t peak = peak_of(cells);
  if (!write_cool_down(cells, microbatches)) return std::nullopt;
  std::optional<BlockCells> packed = compacted(cells);
  if (!packed) return std::nullopt;
  Filling(*packed).fill();
  for (Row& row : *packed)
    if (!sort_weights(row)) return std::nullopt;
  if (peak_of(*packed) > peak || !is_complete(*packed, microbatches)) return std::nullopt;
  return order_of(*packed);
}

}  // namespace

std::vector<TokenOrder> reorder_block(const BlockRows& rows, std::int32_t microbatches) {
  const auto ranks = static_cast<std::int32_t>(rows.size());
  const std::optional<BlockCells> cells = with_new_warm_up(rows, std::max(microbatches, 2 * ranks));
  std::vector<TokenOrder> orders;
  if (!cells) return orders;
  for (const bool puts_off : {false, true}) {
    BlockCells own = *cells;
    if (puts_off && microbatches > ranks) break;
    if (microbatches < 2 * ranks) {
      drop_extra(own, microbatches);
      if (puts_off) delay_weights(own, std::min(2 * ranks, peak_of(*cells)));
      make_even(own);
      std::optional<BlockCells> packed = compacted(own);
      if (!packed) continue;
      own = std::move(*packed);
    }
    if (std::optional<TokenOrder> order = with_new_cool_down(std::move(own), microbatches))
      orders.push_back(std::move(*order));
  }
  return orders;
}

}  // namespace bubblescope::schedules
