// Packs a V-shaped block twice, with compaction in between.
#include "schedules/search/twice_packed.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "schedules/search/microbatch_way.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kPeriod = 6;  ///< F, I and W of two chunks

/// The passes of a micro-batch in order, then the W of either chunk.
enum Pass : std::size_t { kF0, kF1, kI1, kI0, kW };
constexpr std::size_t kPasses = 4;
constexpr std::array<Token, kPasses> kTokenOfPass{0, 3, 4, 1};
constexpr std::array<Pass, 2 * kSteps> kPassOfToken{kF0, kI0, kW, kF1, kI1, kW};

/// [pass]: the slots of a rank's ops, ascending.
using Rows = std::array<std::vector<std::int32_t>, kPasses + 1>;

struct SlotOp {
  std::int32_t slot;
  std::size_t rank;
  std::size_t pass;
  std::size_t n;

  auto operator<=>(const SlotOp&) const = default;
};

std::vector<SlotOp> in_slot_order(const std::vector<Rows>& ranks) {
  std::vector<SlotOp> visits;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (std::size_t pass = 0; pass < ranks[rank].size(); ++pass)
      for (std::size_t n = 0; n < ranks[rank][pass].size(); ++n)
        visits.push_back({ranks[rank][pass][n], rank, pass, n});
  std::sort(visits.begin(), visits.end());
  return visits;
}

/// [slot]: the pass in it, or kNoPass. Long pipelines have many slots, most of them empty.
using Cells = std::vector<std::uint8_t>;
constexpr std::uint8_t kNoPass = kPasses + 2;

Cells cells_of(const Rows& rows) {
  std::int32_t last = 0;
  for (const std::vector<std::int32_t>& slots : rows)
    if (!slots.empty()) last = std::max(last, slots.back());
  Cells cells(static_cast<std::size_t>(last) + 1, kNoPass);
  for (std::size_t pass = 0; pass < rows.size(); ++pass)
    for (const std::int32_t slot : rows[pass])
      cells[static_cast<std::size_t>(slot)] = static_cast<std::uint8_t>(pass);
  return cells;
}

/// A rank's memory if its W's run in the remaining slots.
struct SlotMemory {
  std::int32_t chunks = 0;
  std::int32_t weights = 0;  ///< W that could run

  void pass_slot(std::uint8_t cell) {
    if (cell == kF0 || cell == kF1) ++chunks;
    if (cell == kI0 || cell == kI1) ++weights;
    if (cell == kW) --chunks;
    if (cell != kNoPass || weights == 0) return;
    --weights;
    --chunks;
  }
  auto operator<=>(const SlotMemory&) const = default;
};

/// Adds the W's, each in the first free slot after its I.
void add_weights(Rows& rows) {
  std::int32_t weights = 0;
  const Cells cells = cells_of(rows);
  std::int32_t slot = 0;
  for (const std::uint8_t cell : cells) {
    if (cell == kI0 || cell == kI1) ++weights;
    if (cell == kNoPass && weights > 0) {
      rows[kW].push_back(slot);
      --weights;
    }
    ++slot;
  }
  for (; weights > 0; --weights) rows[kW].push_back(slot++);
}

/// The slots in which the inputs of every op end, if all ops take one slot.
class Inputs {
 public:
  explicit Inputs(const std::vector<Rows>& ranks) : ranks_(ranks) {}

  /// The last slot of the op's inputs, not counting W; -1 if it has no inputs.
  std::int32_t last(const SlotOp& op) const {
    std::int32_t slot = op.n > 0 ? at(op.rank, op.pass, op.n - 1) : -1;
    if (op.pass == kW) return slot;
    const std::optional<VOp> input = input_of(VOp{op.rank, kTokenOfPass[op.pass]}, ranks_.size());
    if (!input) return slot;
    return std::max(slot, at(input->rank, kPassOfToken[input->token], op.n));
  }

 private:
  std::int32_t at(std::size_t rank, std::size_t pass, std::size_t n) const {
    return ranks_[rank][pass][n];
  }
  const std::vector<Rows>& ranks_;
};

/// Moves every op to the first slot after its inputs and after the previous op of its rank.
void compact(std::vector<Rows>& ranks) {
  const std::vector<SlotOp> visits = in_slot_order(ranks);
  const Inputs inputs(ranks);
  std::vector<std::int32_t> free(ranks.size(), 0);
  for (const SlotOp& op : visits) {
    const std::int32_t slot = std::max(free[op.rank], inputs.last(op) + 1);
    ranks[op.rank][op.pass][op.n] = slot;
    free[op.rank] = slot + 1;
  }
}

/// Moves ops to earlier slots. With `with_weights`, W's have slots of their own and the warm-up is
/// packed too; without it, W's run in the remaining slots.
class Packing {
 public:
  Packing(std::vector<Rows>& ranks, bool with_weights)
      : ranks_(ranks), with_weights_(with_weights), inputs_(ranks), gradients_(ranks.size()) {
    for (const Rows& rows : ranks) {
      cells_.push_back(cells_of(rows));
      behind_.emplace_back();
      SlotMemory held;
      for (const std::uint8_t cell : cells_.back()) {
        pass_slot(held, cell);
        behind_.back().push_back(held);
        max_chunks_ = std::max(max_chunks_, held.chunks);
      }
    }
  }

  void pack() {
    bool in_warm_up = true;
    bool is_steady = false;
    for (const SlotOp& op : in_slot_order(ranks_)) {
      const bool first_rank = op.rank == 0;
      if (first_rank && op.pass == kI0 && in_warm_up) {
        in_warm_up = false;
        is_steady = true;
      }
      const bool stays = is_steady || (in_warm_up && !with_weights_);
      if (is_steady && first_rank && op.pass == kF0 && op.n + 1 == ranks_[0][kF0].size())
        is_steady = false;
      if (!stays) move(op);
      if (op.pass == kI0 || op.pass == kI1) note_gradient(op);
    }
  }

 private:
  void pass_slot(SlotMemory& held, std::uint8_t cell) const {
    if (with_weights_ && cell == kNoPass) return;
    held.pass_slot(cell);
    if (with_weights_) held.weights = 0;
  }

  void note_gradient(const SlotOp& op) {
    std::vector<std::int32_t>& slots = gradients_[op.rank];
    const std::int32_t slot = ranks_[op.rank][op.pass][op.n];
    slots.insert(std::upper_bound(slots.begin(), slots.end(), slot), slot);
  }

  void move(const SlotOp& op) {
    std::int32_t first = inputs_.last(op) + 1;
    if (op.pass == kW) first = std::max(first, gradients_[op.rank][op.n] + 1);
    if (with_weights_ && op.pass <= kF1) first = std::max(first, first_roomy(op));
    for (std::int32_t slot = first; slot < op.slot; ++slot)
      if (cells_[op.rank][static_cast<std::size_t>(slot)] == kNoPass && try_slot(op, slot)) return;
  }

  /// The first slot from which all slots up to the op's own have memory for one more chunk.
  std::int32_t first_roomy(const SlotOp& op) const {
    std::int32_t slot = op.slot;
    while (slot > 0 && behind_[op.rank][static_cast<std::size_t>(slot - 1)].chunks < max_chunks_)
      --slot;
    return slot;
  }

  /// Moves the op to `slot` if that does not raise the peak.
  bool try_slot(const SlotOp& op, std::int32_t slot) {
    Cells& cells = cells_[op.rank];
    const auto from = static_cast<std::size_t>(op.slot);
    const auto to = static_cast<std::size_t>(slot);
    std::swap(cells[from], cells[to]);
    if (!keeps_peak(op.rank, to, from)) {
      std::swap(cells[from], cells[to]);
      return false;
    }
    ranks_[op.rank][op.pass][op.n] = slot;
    SlotMemory held = to > 0 ? behind_[op.rank][to - 1] : SlotMemory{};
    for (std::size_t at = to; at < cells.size(); ++at) {
      pass_slot(held, cells[at]);
      if (at > from && held == behind_[op.rank][at]) break;
      behind_[op.rank][at] = held;
    }
    return true;
  }

  /// Whether a rank stays within the peak after its cells between two slots have changed.
  bool keeps_peak(std::size_t rank, std::size_t from, std::size_t to) const {
    SlotMemory held = from > 0 ? behind_[rank][from - 1] : SlotMemory{};
    for (std::size_t at = from; at < cells_[rank].size(); ++at) {
      pass_slot(held, cells_[rank][at]);
      if (held.chunks > max_chunks_) return false;
      if (at > to && held == behind_[rank][at]) break;
    }
    return true;
  }

  std::vector<Rows>& ranks_;
  bool with_weights_;
  Inputs inputs_;
  std::vector<std::vector<std::int32_t>> gradients_;  ///< [rank]: slots of the I so far, ascending
  std::vector<Cells> cells_;                          ///< [rank]
  std::vector<std::vector<SlotMemory>> behind_;       ///< [rank][slot]: memory held after it
  std::int32_t max_chunks_ = 0;
};

/// Appends the rank's tokens. If a W could belong to either chunk, chunk 1's comes first.
void append(TokenOrder& order, const Rows& rows) {
  std::array<std::int32_t, 2> weights{};  // [chunk]
  const auto add_weight = [&] {
    const std::int32_t chunk = weights[1] > 0 ? 1 : 0;
    if (weights[static_cast<std::size_t>(chunk)] == 0) return;
    order.push_back(token_of(chunk, Step::kWeightGrad));
    --weights[static_cast<std::size_t>(chunk)];
  };
  for (const std::uint8_t cell : cells_of(rows)) {
    if (cell == kNoPass) {
      add_weight();
      continue;
    }
    order.push_back(kTokenOfPass[cell]);
    if (cell == kI1) ++weights[1];
    if (cell == kI0) ++weights[0];
  }
  while (weights[0] + weights[1] > 0) add_weight();
}

}  // namespace

TokenOrder pack_block_twice(const SearchProblem& problem, const BuildingBlock& block) {
  std::vector<Rows> ranks(block.ranks.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const BuildingBlock::Passes& at = block.ranks[rank];
    for (std::int32_t start = 0; start < kPeriod * problem.microbatches; start += kPeriod) {
      ranks[rank][kF0].push_back(at.forward[0] + start);
      ranks[rank][kF1].push_back(at.forward[1] + start);
      ranks[rank][kI1].push_back(at.gradient[1] + start);
      ranks[rank][kI0].push_back(at.gradient[0] + start);
    }
  }
  for (const bool with_weights : {true, false}) {
    if (with_weights)
      for (Rows& rows : ranks) add_weights(rows);
    Packing(ranks, with_weights).pack();
    if (!with_weights)
      for (Rows& rows : ranks) add_weights(rows);
    compact(ranks);
    for (Rows& rows : ranks) rows[kW].clear();
  }
  TokenOrder order;
  for (const Rows& rows : ranks) append(order, rows);
  return order;
}

}  // namespace bubblescope::schedules
