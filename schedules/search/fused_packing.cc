// Moves forwards and full backwards through the slots of all ranks.
#include "schedules/search/fused_packing.h"

#include <algorithm>
#include <optional>

#include "schedules/search/microbatch_way.h"

namespace bubblescope::schedules {

namespace {

constexpr std::int32_t kFusedPeriod = 6;  ///< F and a two-slot backward, of two chunks

class FusedPacking {
 public:
  FusedPacking(const SearchProblem& problem, const BuildingBlock& block)
      : problem_(problem), end_of_(static_cast<std::size_t>(problem.stages()) * 2) {
    for (const BuildingBlock::Passes& at : block.ranks)
      slots_ = std::max(
          slots_, 2 + kFusedPeriod * problem.microbatches +
                      std::max({at.forward[0], at.forward[1], at.gradient[0], at.gradient[1]}));
    for (const BuildingBlock::Passes& at : block.ranks) lay_out(at);
  }

  Skeleton pack() {
    for (std::int32_t slot = 0; slot < slots_; ++slot)
      for (std::int32_t rank = 0; rank < problem_.ranks; ++rank)
        if (const std::optional<Token> token =
                ranks_[static_cast<std::size_t>(rank)].starts[at(slot)])
          place(rank, slot, *token);
    Skeleton skeleton;
    for (const RankSlots& rank : ranks_)
      for (const std::optional<Token>& token : rank.starts)
        if (token) skeleton.push_back(*token);
    return skeleton;
  }

 private:
  struct RankSlots {
    std::vector<std::optional<Token>> starts;
    std::vector<char> taken;
    std::vector<std::int32_t> held;  ///< chunks, after each slot
  };

  static std::size_t at(std::int32_t slot) { return static_cast<std::size_t>(slot); }
  static std::int32_t width(Token token) { return step_of(token) == Step::kForward ? 1 : 2; }

  void lay_out(const BuildingBlock::Passes& first) {
    RankSlots rank;
    rank.starts.resize(at(slots_));
    rank.taken.resize(at(slots_));
    for (std::int32_t start = 0; start < kFusedPeriod * problem_.microbatches;
         start += kFusedPeriod)
      for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
        put(rank, first.forward[chunk] + start, token_of(chunk, Step::kForward));
        put(rank, first.gradient[chunk] + start, token_of(chunk, Step::kInputGrad));
      }
    std::int32_t held = 0;
    for (std::int32_t slot = 0; slot < slots_; ++slot) {
      if (const auto& token = rank.starts[at(slot)]; token && width(*token) == 1) ++held;
      if (slot > 0)
        if (const auto& token = rank.starts[at(slot - 1)]; token && width(*token) == 2) --held;
      rank.held.push_back(held);
      max_held_ = std::max(max_held_, held);
    }
    ranks_.push_back(std::move(rank));
  }

  static void put(RankSlots& rank, std::int32_t slot, Token token) {
    rank.starts[at(slot)] = token;
    for (std::int32_t part = 0; part < width(token); ++part) rank.taken[at(slot + part)] = 1;
  }

  static void remove(RankSlots& rank, std::int32_t slot, Token token) {
    rank.starts[at(slot)].reset();
    for (std::int32_t part = 0; part < width(token); ++part) rank.taken[at(slot + part)] = 0;
  }

  /// Returns the end slots of a stage's F (0) or backward (1) that have been placed so far.
  std::vector<std::int32_t>& ends(std::int32_t stage, Step step) {
    return end_of_[static_cast<std::size_t>(stage) * 2 + static_cast<std::size_t>(step)];
  }

  /// The first slot in which the inputs of a rank's next op with this token are available.
  std::int32_t first_slot(std::int32_t rank, Token token) {
    const std::int32_t stage = problem_.stage(rank, token);
    const Step step = step_of(token);
    const std::size_t next = ends(stage, step).size();
    std::int32_t first = next > 0 ? ends(stage, step)[next - 1] : 0;
    if (const auto input = input_of(StageOp{stage, step}, problem_.stages()))
      first = std::max(first, ends(input->stage, input->step)[next]);
    return first;
  }

  std::int32_t best_slot(std::int32_t rank, std::int32_t slot, Token token) {
    const RankSlots& own = ranks_[static_cast<std::size_t>(rank)];
    std::int32_t first = first_slot(rank, token);
    if (width(token) == 2) {
      while (first < slot && (own.taken[at(first)] || own.taken[at(first + 1)])) ++first;
      return first;
    }
    std::int32_t roomy = slot;
    while (roomy > first && own.held[at(roomy - 1)] < max_held_) --roomy;
    while (roomy < slot && own.taken[at(roomy)]) ++roomy;
    return roomy;
  }

  void place(std::int32_t rank, std::int32_t slot, Token token) {
    RankSlots& own = ranks_[static_cast<std::size_t>(rank)];
    const std::int32_t to = best_slot(rank, slot, token);
    remove(own, slot, token);
    put(own, to, token);
    const bool forward = width(token) == 1;
    for (std::int32_t moved = to; moved < slot; ++moved)
      forward ? ++own.held[at(moved)] : --own.held[at(moved + 1)];
    ends(problem_.stage(rank, token), step_of(token)).push_back(to + width(token));
  }

  const SearchProblem& problem_;
  std::vector<RankSlots> ranks_;
  std::vector<std::vector<std::int32_t>> end_of_;
  std::int32_t slots_ = 0;
  std::int32_t max_held_ = 0;
};

}  // namespace

BuildingBlock make_fused_v_block(std::int32_t ranks) {
  constexpr std::int32_t kTurns = 3;  ///< ranks between two pauses
  BuildingBlock block;
  block.ranks.resize(static_cast<std::size_t>(ranks));
  std::int32_t slot = 0;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    block.ranks[static_cast<std::size_t>(rank)].forward[0] = slot++;
  for (std::int32_t rank = ranks - 1; rank >= 0; --rank)
    block.ranks[static_cast<std::size_t>(rank)].forward[1] = slot++;
  if (ranks % kTurns == 0) slot += kTurns;
  std::int32_t turn = (kTurns - (ranks + 2) % kTurns) % kTurns;
  const auto next = [&] {
    const std::int32_t taken = slot;
    slot += ++turn % kTurns == 0 ? 2 + kTurns : 2;
    return taken;
  };
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    block.ranks[static_cast<std::size_t>(rank)].gradient[1] = next();
  for (std::int32_t rank = ranks - 1; rank >= 0; --rank)
    block.ranks[static_cast<std::size_t>(rank)].gradient[0] = next();
  return block;
}

Skeleton pack_fused_block(const SearchProblem& problem, const BuildingBlock& block) {
  return FusedPacking(problem, block).pack();
}

}  // namespace bubblescope::schedules
