// A walk over every stage's backwards.
#include "exec/gpu/version_ring.h"

#include <algorithm>
#include <string>

#include "exec/training/weight_versions.h"
#include "sim/ir/error.h"

namespace bubblescope {

namespace {

class StageWalk {
 public:
  explicit StageWalk(const std::vector<WeightUse>& uses) : uses_(uses), readers_(uses.size() + 1) {
    for (const WeightUse& use : uses) ++readers_[static_cast<std::size_t>(use.read)];
  }

  void end_backward(const Op& op) {
    const WeightUse& use = uses_[static_cast<std::size_t>(op.microbatch)];
    --readers_[static_cast<std::size_t>(use.read)];
    leaves_gradients_ = !use.written;
    if (!use.written) return;
    const std::int32_t newest = ++plan_.updates;
    std::int32_t oldest = 0;
    while (oldest < newest && readers_[static_cast<std::size_t>(oldest)] == 0) ++oldest;
    plan_.at_once = std::max(plan_.at_once, newest - oldest + 1);
  }

  VersionPlan finish(const Schedule& schedule) const {
    if (plan_.updates > 0 && leaves_gradients_)
      throw Error(schedule.name +
                  ": the last micro-batches of a step are in no update of it, which is not trained "
                  "on GPUs; use --backend cpu, or a multiple of an update's micro-batches as -m");
    return plan_;
  }

 private:
  const std::vector<WeightUse>& uses_;
  std::vector<std::int32_t> readers_;  ///< [version]: micro-batches that still need it
  VersionPlan plan_;
  bool leaves_gradients_ = false;
};

}  // namespace

std::vector<VersionPlan> plan_versions(const Schedule& schedule) {
  const std::vector<std::vector<WeightUse>> uses = weight_uses(schedule);
  std::vector<StageWalk> walks(uses.begin(), uses.end());
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (op.kind == OpKind::kBackward || op.kind == OpKind::kWeightGrad)
        if (op.slice == 0) walks[static_cast<std::size_t>(op.stage)].end_backward(op);
  std::vector<VersionPlan> plans;
  for (const StageWalk& walk : walks) plans.push_back(walk.finish(schedule));
  return plans;
}

}  // namespace bubblescope
