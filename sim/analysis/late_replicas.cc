// Compares the replicas of each step.
#include "sim/analysis/late_replicas.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

Nanos shortest_delay(const StepStarts& step) {
  Nanos shortest = std::numeric_limits<Nanos>::max();
  for (const auto& [_, start] : step) shortest = std::min(shortest, start.delay);
  return shortest;
}

LateStart find_late_start(const StepStarts& step) {
  constexpr double kNoticed = 0.01;  // as a fraction of the replica's step
  const Nanos earliest = shortest_delay(step);
  Nanos last = std::numeric_limits<Nanos>::min();
  Nanos last_without = std::numeric_limits<Nanos>::min();
  LateStart found;
  for (const auto& [replica, start] : step) {
    const Nanos arrival = -start.in_collectives;
    const Nanos late = start.delay - earliest;
    last = std::max(last, arrival);
    last_without = std::max(last_without, arrival - late);
    if (static_cast<double>(late) > kNoticed * static_cast<double>(start.length))
      found.replicas.insert(replica);
  }
  if (!found.replicas.empty()) found.saves = last - last_without;
  return found;
}

}  // namespace

std::optional<Cause> LateReplicas::find_cause(const std::vector<std::int64_t>& numbers) const {
  ReplicasThatBeginLate facts;
  std::set<std::int32_t> late;
  std::vector<Nanos> gains;
  for (const std::int64_t number : numbers) {
    const auto step = steps.find(number);
    if (step == steps.end()) continue;
    gains.push_back(step->second.saves);
    if (gains.back() == 0) continue;
    ++facts.steps;
    late.insert(step->second.replicas.begin(), step->second.replicas.end());
  }
  if (gains.empty()) return {};
  facts.replicas.assign(late.begin(), late.end());
  Cause cause{facts};
  cause.saves = std::accumulate(gains.begin(), gains.end(), Nanos{0}) / std::ssize(gains);
  if (cause.saves == 0) return {};
  cause.all_steps = std::ssize(gains);
  cause.has_replicas = true;
  cause.saves_p5 = quantile(gains, 5);
  cause.saves_p95 = quantile(gains, 95);
  return cause;
}

LateReplicas find_late_replicas(const std::map<std::int64_t, StepStarts>& steps) {
  LateReplicas found;
  for (const auto& [number, step] : steps) {
    if (step.size() < 2) continue;
    const Nanos earliest = shortest_delay(step);
    for (const auto& [replica, start] : step)
      found.delays[{replica, number}] = start.delay - earliest;
    found.steps[number] = find_late_start(step);
  }
  return found;
}

}  // namespace bubblescope::inline sim
