// Finds the replica that a step waits for.
#include "traces/measured/whole_steps.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace bubblescope::traces {

namespace {

/// The others wait in collectives for the slowest replica. Of those that wait as little as another,
/// it is the one whose ops take the longest.
const ReplicaStep& find_slowest(const std::map<std::int32_t, ReplicaStep>& replicas) {
  constexpr double kNoticed = 0.01;  // of the step
  Nanos least = std::numeric_limits<Nanos>::max();
  for (const auto& [_, replica] : replicas) least = std::min(least, replica.time_in_collectives());
  const auto waits = [&](const ReplicaStep& replica) {
    return static_cast<double>(replica.time_in_collectives() - least) >
           kNoticed * static_cast<double>(replica.whole());
  };
  const ReplicaStep* slowest = nullptr;
  for (const auto& [_, replica] : replicas)
    if (!waits(replica) && (!slowest || replica.pipeline().length() > slowest->pipeline().length()))
      slowest = &replica;
  return *slowest;
}

}  // namespace

std::vector<WholeStep> find_whole_steps(const std::vector<ObservedActivity>& activities,
                                        const PipelineExtents& pipelines) {
  std::vector<WholeStep> found;
  for (const auto& [number, replicas] : group_replicas(pipelines, activities)) {
    const ReplicaStep& slowest = find_slowest(replicas);
    WholeStep step{number, 0, slowest.pipeline().length(), slowest.outer_parts()};
    for (const auto& [_, replica] : replicas) step.whole = std::max(step.whole, replica.whole());
    found.push_back(std::move(step));
  }
  return found;
}

}  // namespace bubblescope::traces
