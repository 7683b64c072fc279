// Compares the replicas of each step.
#include "traces/measured/late_replicas.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "sim/ir/quantile.h"
#include "traces/measured/replica_step.h"

namespace bubblescope::traces {

namespace {

using Replicas = std::map<std::int32_t, ReplicaStep>;

/// Empty where the start of a step is not known.
StepExtents find_extents(const std::vector<MeasuredStep>& measured) {
  StepExtents extents;
  for (const MeasuredStep& step : measured) {
    if (!step.begin) return {};
    extents[{step.replica, step.number}] = {*step.begin,
                                            *step.begin + compute_makespan(step.timeline)};
  }
  return extents;
}

/// How long each replica of a step takes from its start to its ops; empty where that is not known.
std::map<std::int32_t, Nanos> find_delays(const Replicas& step, const Replicas* previous) {
  std::map<std::int32_t, Nanos> delays;
  for (const auto& [number, replica] : step) {
    if (!replica.has_collectives()) return {};
    std::optional<Nanos> start = replica.marked_start();
    if (!start && previous) {
      const auto found = previous->find(number);
      if (found != previous->end()) start = found->second.all().end;
    }
    if (!start) return {};
    const Nanos delay = replica.pipeline().start - *start - replica.time_in_collectives_before();
    delays[number] = std::max<Nanos>(0, delay);
  }
  return delays;
}

Nanos shortest_of(const std::map<std::int32_t, Nanos>& times) {
  Nanos shortest = std::numeric_limits<Nanos>::max();
  for (const auto& [_, time] : times) shortest = std::min(shortest, time);
  return shortest;
}

LateStart find_late_start(const Replicas& step, const std::map<std::int32_t, Nanos>& delays) {
  constexpr double kNoticed = 0.01;  // of the replica's step
  const Nanos earliest = shortest_of(delays);
  Nanos last = std::numeric_limits<Nanos>::min();
  Nanos last_without = std::numeric_limits<Nanos>::min();
  LateStart found;
  for (const auto& [number, replica] : step) {
    const Nanos arrival = -replica.time_in_collectives();
    const Nanos late = delays.at(number) - earliest;
    last = std::max(last, arrival);
    last_without = std::max(last_without, arrival - late);
    if (static_cast<double>(late) > kNoticed * static_cast<double>(replica.all().length()))
      found.replicas.insert(number);
  }
  if (!found.replicas.empty()) found.saves = last - last_without;
  return found;
}

}  // namespace

std::optional<Cause> LateReplicas::find_cause(const std::vector<std::int64_t>& numbers) const {
  Cause cause{CauseKind::kLateReplica};
  std::set<std::int32_t> late;
  std::vector<Nanos> gains;
  for (const std::int64_t number : numbers) {
    const auto step = steps.find(number);
    if (step == steps.end()) continue;
    gains.push_back(step->second.saves);
    if (gains.back() == 0) continue;
    ++cause.steps;
    late.insert(step->second.replicas.begin(), step->second.replicas.end());
  }
  if (gains.empty()) return {};
  cause.saves = std::accumulate(gains.begin(), gains.end(), Nanos{0}) / std::ssize(gains);
  if (cause.saves == 0) return {};
  for (const std::int32_t replica : late) cause.changed.push_back({replica, 0});
  cause.all_steps = std::ssize(gains);
  cause.has_replicas = true;
  cause.saves_p5 = quantile(gains, 5);
  cause.saves_p95 = quantile(gains, 95);
  return cause;
}

LateReplicas find_late_replicas(const std::vector<ObservedWork>& works,
                                const std::vector<MeasuredStep>& measured) {
  const std::map<std::int64_t, Replicas> steps = group_replicas(find_extents(measured), works);
  LateReplicas found;
  const Replicas* previous = nullptr;
  for (const auto& [number, step] : steps) {
    const std::map<std::int32_t, Nanos> delays = find_delays(step, previous);
    previous = &step;
    if (step.size() < 2 || delays.empty()) continue;
    const Nanos earliest = shortest_of(delays);
    for (const auto& [replica, delay] : delays) found.delays[{replica, number}] = delay - earliest;
    found.steps[number] = find_late_start(step, delays);
  }
  return found;
}

}  // namespace bubblescope::traces
