// Moves ops through the slots of all ranks.
#include "schedules/search/block_packing.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "schedules/search/microbatch_way.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kPackedPeriod = 6;  ///< F, I and W of two chunks
constexpr Token kAnyWeight = static_cast<Token>(Step::kWeightGrad);

/// One rank's slots. Its W are interchangeable: the order of its I determines which is which.
struct RankSlots {
  std::vector<std::optional<Token>> ops;
  std::vector<std::int32_t> held;       ///< chunks, after each slot
  std::int64_t max_chunks = 0;          ///< chunks that the cap allows
  std::vector<std::int32_t> gradients;  ///< slots of the I placed so far, ascending
  std::int32_t weights = 0;             ///< W placed so far
};

class BlockPacking {
 public:
  BlockPacking(const SearchProblem& problem, const BuildingBlock& block)
      : problem_(problem), slot_of_(static_cast<std::size_t>(problem.stages()) * 2) {
    for (std::int32_t rank = 0; rank < problem.ranks; ++rank) {
      ranks_.push_back(unpacked(block.ranks[static_cast<std::size_t>(rank)], rank));
      slots_ = std::max(slots_, ranks_.back().ops.size());
    }
  }

  TokenOrder pack() {
    for (std::size_t slot = 0; slot < slots_; ++slot)
      for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
        if (slot < ranks_[rank].ops.size() && ranks_[rank].ops[slot])
          place(rank, static_cast<std::int32_t>(slot));
    TokenOrder order;
    for (const RankSlots& rank : ranks_) append(order, rank);
    return order;
  }

 private:
  RankSlots unpacked(const BuildingBlock::Passes& at, std::int32_t rank) const {
    RankSlots slots;
    const std::int32_t last = kPackedPeriod * problem_.microbatches;
    slots.ops.resize(static_cast<std::size_t>(
        2 * last + std::max({at.forward[0], at.forward[1], at.gradient[0], at.gradient[1]})));
    for (std::int32_t start = 0; start < last; start += kPackedPeriod)
      for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
        slots.ops[static_cast<std::size_t>(at.forward[chunk] + start)] =
            token_of(chunk, Step::kForward);
        slots.ops[static_cast<std::size_t>(at.gradient[chunk] + start)] =
            token_of(chunk, Step::kInputGrad);
      }
    std::int32_t pending = 0;
    std::int32_t held = 0;
    for (std::optional<Token>& op : slots.ops) {
      if (op && step_of(*op) == Step::kInputGrad) ++pending;
      if (op && step_of(*op) == Step::kForward) ++held;
      if (!op && pending > 0) {
        op = kAnyWeight;
        --pending;
        --held;
      }
      slots.held.push_back(held);
    }
    const std::int64_t chunk = memory_for_rest(problem_, rank, problem_.chunks - 1);
    slots.max_chunks =
        chunk > 0 ? problem_.cap[rank] / chunk : std::numeric_limits<std::int64_t>::max();
    return slots;
  }

  /// Returns the slots of a stage's F (0) or I (1) that have been placed so far.
  std::vector<std::int32_t>& placed(std::int32_t stage, Step step) {
    return slot_of_[static_cast<std::size_t>(stage) * 2 + static_cast<std::size_t>(step)];
  }

  /// The first slot in which the inputs of a rank's op are available.
  std::int32_t first_slot(std::int32_t rank, Token token) {
    RankSlots& own = ranks_[rank];
    const Step step = step_of(token);
    if (step == Step::kWeightGrad) return own.gradients[static_cast<std::size_t>(own.weights)] + 1;
    const std::int32_t stage = problem_.stage(rank, token);
    const std::size_t next = placed(stage, step).size();
    std::int32_t last = next > 0 ? placed(stage, step)[next - 1] : -1;
    if (const auto input = input_of(StageOp{stage, step}, problem_.stages()))
      last = std::max(last, placed(input->stage, input->step)[next]);
    return last + 1;
  }

  /// The slot to which the op in `slot` moves.
  std::int32_t best_slot(std::int32_t rank, std::int32_t slot, Token token) {
    const RankSlots& own = ranks_[rank];
    std::int32_t first = first_slot(rank, token);
    if (step_of(token) == Step::kForward) {
      std::int32_t roomy = slot;
      while (roomy > first && own.held[static_cast<std::size_t>(roomy - 1)] < own.max_chunks)
        --roomy;
      first = roomy;
    }
    while (first < slot && own.ops[static_cast<std::size_t>(first)]) ++first;
    return first;
  }

  void place(std::int32_t rank, std::int32_t slot) {
    RankSlots& own = ranks_[rank];
    const Token token = *own.ops[static_cast<std::size_t>(slot)];
    // Whether the op belongs to stage 0.
    const bool of_first = rank == 0 && token < kSteps;
    if (of_first && step_of(token) == Step::kInputGrad) is_steady_ = forwards_left();
    const std::int32_t to = is_steady_ ? slot : best_slot(rank, slot, token);
    if (to != slot)
      std::swap(own.ops[static_cast<std::size_t>(slot)], own.ops[static_cast<std::size_t>(to)]);
    const std::int32_t change = step_of(token) == Step::kForward     ? 1
                                : step_of(token) == Step::kInputGrad ? 0
                                                                     : -1;
    for (std::int32_t at = to; at < slot; ++at) own.held[static_cast<std::size_t>(at)] += change;
    if (step_of(token) == Step::kWeightGrad) {
      ++own.weights;
      return;
    }
    placed(problem_.stage(rank, token), step_of(token)).push_back(to);
    if (step_of(token) == Step::kInputGrad)
      own.gradients.insert(std::upper_bound(own.gradients.begin(), own.gradients.end(), to), to);
    if (of_first && !forwards_left()) is_steady_ = false;
  }

  bool forwards_left() {
    return placed(0, Step::kForward).size() < static_cast<std::size_t>(problem_.microbatches);
  }

  static void append(TokenOrder& order, const RankSlots& rank) {
    std::vector<Token> pending;
    std::size_t next = 0;
    for (const std::optional<Token>& op : rank.ops) {
      if (!op) continue;
      const bool is_weight = step_of(*op) == Step::kWeightGrad;
      order.push_back(is_weight ? pending[next++] : *op);
      if (step_of(*op) == Step::kInputGrad) pending.push_back(static_cast<Token>(*op + 1));
    }
  }

  const SearchProblem& problem_;
  std::vector<RankSlots> ranks_;
  std::vector<std::vector<std::int32_t>> slot_of_;  ///< [stage * 2 + step]: see placed()
  std::size_t slots_ = 0;
  bool is_steady_ = false;
};

}  // namespace

TokenOrder pack_block(const SearchProblem& problem, const BuildingBlock& block) {
  return BlockPacking(problem, block).pack();
}

Skeleton remove_weights(const TokenOrder& order) {
  Skeleton skeleton;
  std::copy_if(order.begin(), order.end(), std::back_inserter(skeleton),
               [](Token token) { return step_of(token) != Step::kWeightGrad; });
  return skeleton;
}

}  // namespace bubblescope::schedules
