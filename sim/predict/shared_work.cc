// Recognizes the moves of a schedule by applying them again.
#include "sim/predict/shared_work.h"

#include <algorithm>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"
#include "sim/ir/recompute.h"
#include "sim/predict/moves.h"

namespace bubblescope::inline sim {

namespace {

std::vector<Recompute> find_recompute_moves(const Schedule& measured, const Schedule& other) {
  if (!has_kind(measured, OpKind::kRecompute)) return {};
  std::vector<Recompute> of_stage;
  for (std::int32_t stage = 0; stage < measured.stages_per_pipeline(); ++stage)
    of_stage.push_back(recomputes(measured, stage) ? measured.recompute(stage) : Recompute::kNone);
  const auto differs = [&](Recompute one) { return one != of_stage.front(); };
  if (std::none_of(of_stage.begin(), of_stage.end(), differs)) return {of_stage.front()};
  if (other.stages_per_pipeline() != measured.stages_per_pipeline())
    throw Error("has other stages than the measured schedule, of whose stages only some recompute");
  return of_stage;
}

/// Returns the ways in which ranks gather parameters.
std::vector<Sharding> list_shardings(bool waits_for_reductions) {
  std::vector<Sharding> all;
  for (const PytorchRelease release : {PytorchRelease::kFrom215, PytorchRelease::kFrom26}) {
    all.push_back({release, waits_for_reductions, {}});
    all.push_back({release, waits_for_reductions, UnshardLookahead{}});
    for (std::int32_t stages = 1; stages <= static_cast<std::int32_t>(kMaxGatheredStages); ++stages)
      all.push_back({release, waits_for_reductions, UnshardLookahead{{stages}}});
  }
  return all;
}

std::vector<RankOrder> without_idle(std::vector<RankOrder> lists) {
  for (RankOrder& list : lists)
    std::erase_if(list, [](const Op& op) { return op.kind == OpKind::kIdle; });
  return lists;
}

bool gathers_like(const ValidSchedule& bare, const Schedule& measured, const Sharding& sharding) {
  Moves moves;
  moves.sharding = sharding;
  return without_idle(apply_moves(bare, moves)->posted) == without_idle(measured.posted);
}

std::optional<Sharding> find_sharding(const Schedule& measured) {
  if (!posts_collectives(measured)) return {};
  Schedule without = measured;
  without.posted.clear();
  const ValidSchedule bare = require_valid(std::move(without));
  for (const Sharding& sharding :
       list_shardings(has_kind(measured.posted, OpKind::kWaitReduceGrad)))
    if (gathers_like(bare, measured, sharding)) return sharding;
  throw Error(
      "would have to gather parameters in an order of its own: that of the measured schedule "
      "follows from no rule of PyTorch's");
}

}  // namespace

SharedWork find_shared_work(const ValidSchedule& measured, const LowerOptions& lower,
                            const ValidSchedule& other) {
  if (has_kind(*measured, OpKind::kEvict))
    throw Error("does not offload activations, as the measured schedule does");
  SharedWork shared{lower, {}};
  shared.moves.recompute = find_recompute_moves(*measured, *other);
  shared.moves.sharding = find_sharding(*measured);
  return shared;
}

}  // namespace bubblescope::inline sim
