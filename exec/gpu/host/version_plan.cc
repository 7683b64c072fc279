// Walks over the backwards of every rank.
#include "exec/gpu/host/version_plan.h"

#include <algorithm>

#include "exec/training/weight_versions.h"

namespace bubblescope::exec {

namespace {

/// The versions of one replica of a stage, while its micro-batches run.
class ReplicaVersions {
 public:
  /// `uses` lists all micro-batches of the stage.
  explicit ReplicaVersions(const std::vector<WeightUse>& uses)
      : uses_(uses), readers_(uses.size() + 1) {}

  void add(const Op& op) { ++readers_[static_cast<std::size_t>(use_of(op).read)]; }

  void end_backward(const Op& op) {
    const WeightUse& use = use_of(op);
    --readers_[static_cast<std::size_t>(use.read)];
    plan_.leaves_gradients = !use.written;
    if (!use.written) return;
    const std::int32_t newest = ++plan_.updates;
    std::int32_t oldest = 0;
    while (oldest < newest && readers_[static_cast<std::size_t>(oldest)] == 0) ++oldest;
    plan_.live_versions = std::max(plan_.live_versions, newest - oldest + 1);
  }

  /// Without updates in the step, no gradients are left for the next one.
  VersionPlan finish() {
    plan_.leaves_gradients = plan_.leaves_gradients && plan_.updates > 0;
    return plan_;
  }

 private:
  const WeightUse& use_of(const Op& op) const {
    return uses_[static_cast<std::size_t>(op.microbatch)];
  }

  const std::vector<WeightUse>& uses_;
  std::vector<std::int32_t> readers_;  ///< [version]: micro-batches that still need it
  VersionPlan plan_;
};

/// Whether the op is the last of its micro-batch on its stage.
bool ends_backward(const Op& op) { return op.slice == 0 && makes_weight_grad(op.kind); }

}  // namespace

std::vector<VersionPlan> plan_versions(const Schedule& schedule) {
  const StageReplicas stage_replicas(schedule);
  const std::vector<std::vector<WeightUse>> uses = weight_uses(schedule);
  std::vector<ReplicaVersions> walks;
  for (StageReplica replica = 0; replica < stage_replicas.size(); ++replica)
    walks.emplace_back(uses[static_cast<std::size_t>(stage_replicas.stage(replica))]);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (ends_backward(op)) walks[stage_replicas.find(op)].add(op);
  for (const RankOrder& ops : schedule.order)
    for (const Op& op : ops)
      if (ends_backward(op)) walks[stage_replicas.find(op)].end_backward(op);
  std::vector<VersionPlan> plans;
  for (ReplicaVersions& walk : walks) plans.push_back(walk.finish());
  return plans;
}

}  // namespace bubblescope::exec
