// Compares each step with the one before it.
#include "traces/measured/replica_starts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "traces/measured/replica_step.h"
#include "traces/measured/step_extents.h"

namespace bubblescope::traces {

namespace {

using Replicas = std::map<std::int32_t, ReplicaStep>;

/// Empty where the start of a step is not known.
PipelineExtents find_pipeline_extents(const std::vector<MeasuredStep>& measured) {
  PipelineExtents extents;
  for (const MeasuredStep& step : measured) {
    const std::optional<TimeSpan> extent = find_extent(step);
    if (!extent) return {};
    extents[{step.replica, step.number}].ops = *extent;
  }
  return extents;
}

/// Empty where the start of one of them is not known.
StepStarts find_starts(const Replicas& step, const Replicas* previous) {
  StepStarts starts;
  for (const auto& [number, replica] : step) {
    if (!replica.has_collectives()) return {};
    std::optional<Nanos> start;
    if (replica.marked()) {
      start = replica.marked()->start;
    } else if (previous) {
      const auto found = previous->find(number);
      if (found != previous->end()) start = found->second.all().end;
    }
    if (!start) return {};
    const Nanos delay = replica.pipeline().start - *start - replica.time_in_collectives_before();
    starts[number] = {std::max<Nanos>(0, delay), replica.time_in_collectives(),
                      replica.all().length()};
  }
  return starts;
}

}  // namespace

std::map<std::int64_t, StepStarts> find_replica_starts(
    const std::vector<ObservedActivity>& activities, const std::vector<MeasuredStep>& measured) {
  const std::map<std::int64_t, Replicas> steps =
      group_replicas(find_pipeline_extents(measured), activities);
  std::map<std::int64_t, StepStarts> found;
  const Replicas* previous = nullptr;
  for (const auto& [number, step] : steps) {
    StepStarts starts = find_starts(step, previous);
    previous = &step;
    if (!starts.empty()) found.emplace(number, std::move(starts));
  }
  return found;
}

}  // namespace bubblescope::traces
