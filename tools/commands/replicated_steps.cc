// Replicas are numbered by the trace, and counted here.
#include "tools/commands/replicated_steps.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace bubblescope::tools {

std::vector<std::int64_t> numbers_of(const std::vector<traces::MeasuredStep>& steps) {
  std::set<std::int64_t> numbers;
  for (const traces::MeasuredStep& step : steps) numbers.insert(step.number);
  return {numbers.begin(), numbers.end()};
}

std::vector<std::int32_t> list_replicas(const std::vector<traces::MeasuredStep>& steps) {
  std::set<std::int32_t> numbers;
  for (const traces::MeasuredStep& step : steps) numbers.insert(step.replica);
  return {numbers.begin(), numbers.end()};
}

ObservedStep observe(const traces::MeasuredStep& step) {
  return {step.program, step.timeline, step.schedule->stages() - step.schedule->side_stages};
}

std::vector<ReplicatedStep> join_replicas(const std::vector<traces::MeasuredStep>& steps,
                                          const LateReplicas& late) {
  std::map<std::int64_t, ReplicatedStep> by_number;
  for (const traces::MeasuredStep& step : steps) {
    ObservedStep& replica = by_number[step.number].emplace_back(observe(step));
    const auto delay = late.delays.find({step.replica, step.number});
    if (delay != late.delays.end()) replica.delay = delay->second;
  }
  const std::size_t all = list_replicas(steps).size();
  std::vector<ReplicatedStep> replicated;
  for (auto& [_, replicas] : by_number) {
    if (replicas.size() != all) return {};
    replicated.push_back(std::move(replicas));
  }
  return replicated;
}

std::vector<std::vector<OuterActivity>> activities_of(const traces::AssembledSteps& read) {
  const std::vector<std::int32_t> replicas = list_replicas(read.steps);
  std::vector<std::vector<OuterActivity>> activities;
  for (const std::int64_t number : numbers_of(read.steps)) {
    const auto known = read.outer_activities.find(number);
    if (known == read.outer_activities.end()) return {};
    std::vector<OuterActivity>& own = activities.emplace_back();
    for (OuterActivity activity : known->second) {
      const auto place = std::find(replicas.begin(), replicas.end(), activity.replica);
      if (place == replicas.end()) continue;  // none of its steps is whole
      activity.replica = static_cast<std::int32_t>(place - replicas.begin());
      own.push_back(std::move(activity));
    }
  }
  return activities;
}

}  // namespace bubblescope::tools
