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
#include "traces/measured/collective_names.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// One replica in one step.
struct ReplicaTimes {
  TimeSpan pipeline;
  TimeSpan all;
  std::optional<Nanos> marked;                   ///< where the first mark of the step starts
  std::map<std::int32_t, Nanos> before;          ///< [recorder]: in collectives before the ops
  std::map<std::int32_t, Nanos> in_collectives;  ///< [recorder]: outside of the replica's ops

  void add(const ObservedWork& work) {
    if (work.is_whole_step) {
      marked = std::min(marked.value_or(work.start), work.start);
      return;
    }
    widen(all, work);
    if (!is_named_like_collective(work.name)) return;
    const Nanos early = std::max<Nanos>(0, std::min(work.end, pipeline.start) - work.start);
    const Nanos late = std::max<Nanos>(0, work.end - std::max(work.start, pipeline.end));
    before[work.recorder] += early;
    in_collectives[work.recorder] += early + late;
  }
};

using Replicas = std::map<std::int32_t, ReplicaTimes>;

Nanos longest_of(const std::map<std::int32_t, Nanos>& times) {
  Nanos longest = 0;
  for (const auto& [_, time] : times) longest = std::max(longest, time);
  return longest;
}

std::map<std::int64_t, Replicas> sort_by_step(const std::vector<ObservedWork>& works,
                                              const std::vector<MeasuredStep>& measured) {
  std::map<std::int64_t, Replicas> steps;
  for (const MeasuredStep& step : measured) {
    if (!step.begin) return {};
    const TimeSpan ops{*step.begin, *step.begin + compute_makespan(step.timeline)};
    steps[step.number][step.replica] = {ops, ops, {}, {}, {}};
  }
  for (const ObservedWork& work : works) {
    const auto step = steps.find(work.step);
    if (step == steps.end()) continue;
    const auto replica = step->second.find(work.replica);
    if (replica != step->second.end()) replica->second.add(work);
  }
  return steps;
}

/// How long each replica of a step takes from its start to its ops; empty where that is not known.
std::map<std::int32_t, Nanos> find_delays(const Replicas& step, const Replicas* previous) {
  std::map<std::int32_t, Nanos> delays;
  for (const auto& [number, replica] : step) {
    if (replica.in_collectives.empty()) return {};
    std::optional<Nanos> start = replica.marked;
    if (!start && previous) {
      const auto found = previous->find(number);
      if (found != previous->end()) start = found->second.all.end;
    }
    if (!start) return {};
    const Nanos delay = replica.pipeline.start - *start - longest_of(replica.before);
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
    const Nanos arrival = -longest_of(replica.in_collectives);
    const Nanos late = delays.at(number) - earliest;
    last = std::max(last, arrival);
    last_without = std::max(last_without, arrival - late);
    const Nanos whole = replica.all.end - replica.all.start;
    if (static_cast<double>(late) > kNoticed * static_cast<double>(whole))
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
  const std::map<std::int64_t, Replicas> steps = sort_by_step(works, measured);
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
