// Follows each stage, micro-batch and slice through the states that its ops lead to.
#include "sim/ir/plain_ops.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bubblescope::inline sim {

namespace {

/// The states of a stage's slice of a micro-batch: no op has run, F, F and I, or all have.
enum class SliceState : std::uint8_t { kUntouched, kForwarded, kAwaitsW, kComplete, kInvalid };
constexpr std::size_t kSliceStates = 5;

/// [state][kind]: the state that an op leads to.
constexpr std::array<std::array<SliceState, kPlainKinds>, kSliceStates> kNext = [] {
  std::array<std::array<SliceState, kPlainKinds>, kSliceStates> next{};
  for (auto& of_state : next) of_state.fill(SliceState::kInvalid);
  const auto lead = [&next](SliceState from, OpKind kind, SliceState to) {
    next[static_cast<std::size_t>(from)][static_cast<std::size_t>(kind)] = to;
  };
  lead(SliceState::kUntouched, OpKind::kForward, SliceState::kForwarded);
  lead(SliceState::kForwarded, OpKind::kBackward, SliceState::kComplete);
  lead(SliceState::kForwarded, OpKind::kInputGrad, SliceState::kAwaitsW);
  lead(SliceState::kAwaitsW, OpKind::kWeightGrad, SliceState::kComplete);
  return next;
}();

/// Whether each stage's slice of a micro-batch has to run F, and B or I and W, and nothing else.
bool needs_only_plain_ops(const Schedule& schedule) {
  return schedule.pipelines == 1 && !schedule.forward_only && schedule.fused_forwards == 1 &&
         schedule.replicas_of_stage.empty() && schedule.recompute_of_stage.empty();
}

/// The states of all slices after the ops that have run.
class SliceStates {
 public:
  explicit SliceStates(const Schedule& schedule)
      : schedule_(schedule),
        microbatches_(static_cast<std::size_t>(schedule.shape.microbatches)),
        slices_(static_cast<std::size_t>(schedule.shape.slices)),
        states_(schedule.rank_of_stage.size() * microbatches_ * slices_, SliceState::kUntouched) {}

  /// False if an op is not in its place.
  bool run(const Op& op, std::int32_t rank) {
    const auto stage = static_cast<std::size_t>(op.stage);  // negative numbers are large ones
    const auto microbatch = static_cast<std::size_t>(op.microbatch);
    const auto slice = static_cast<std::size_t>(op.slice);
    const auto kind = static_cast<std::size_t>(op.kind);
    if (stage >= schedule_.rank_of_stage.size() || microbatch >= microbatches_ ||
        slice >= slices_ || kind >= kPlainKinds || op.pairing != Pairing::kAlone ||
        schedule_.rank_of_stage[stage] != rank)
      return false;
    SliceState& state = states_[(stage * microbatches_ + microbatch) * slices_ + slice];
    state = kNext[static_cast<std::size_t>(state)][kind];
    return state != SliceState::kInvalid;
  }

  bool are_complete() const {
    return std::all_of(states_.begin(), states_.end(),
                       [](SliceState state) { return state == SliceState::kComplete; });
  }

 private:
  const Schedule& schedule_;
  std::size_t microbatches_;
  std::size_t slices_;
  std::vector<SliceState> states_;  ///< [stage][micro-batch][slice]
};

}  // namespace

bool are_plainly_valid(const Schedule& schedule) {
  if (!needs_only_plain_ops(schedule)) return false;
  SliceStates states(schedule);
  for (std::int32_t rank = 0; rank < schedule.shape.ranks; ++rank)
    for (const Op& op : schedule.order[static_cast<std::size_t>(rank)])
      if (!states.run(op, rank)) return false;
  return states.are_complete();
}

}  // namespace bubblescope::inline sim
