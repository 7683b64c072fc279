// Adds up what runs around a replica's ops.
#include "traces/measured/replica_step.h"

#include <algorithm>

#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

OuterTime outer_time(const ObservedActivity& activity, TimeSpan pipeline) {
  const Nanos before = std::min(activity.end, pipeline.start) - activity.start;
  const Nanos after = activity.end - std::max(activity.start, pipeline.end);
  return {std::max<Nanos>(0, before), std::max<Nanos>(0, after)};
}

}  // namespace

void add_mark(LastMarks& last, TimeSpan mark) {
  last = last ? TimeSpan{std::max(last->start, mark.start), std::max(last->end, mark.end)} : mark;
}

void ReplicaStep::add(const ObservedActivity& activity) {
  if (activity.has_other_name) {
    const Nanos length = activity.end - activity.start;
    if (!other_range_ || length > other_range_->second) other_range_ = {activity.name, length};
    return;
  }
  if (activity.is_whole_step && activity.may_lack_work) {
    longest_range_ = std::max(longest_range_, activity.end - activity.start);
    return;
  }
  if (activity.is_whole_step) {
    add_mark(marked_, {activity.start, activity.end});
    return;
  }
  const OuterTime time = outer_time(activity, pipeline_);
  if (time.before > 0 && waiting_.contains(activity.recorder)) {
    const TimeSpan before{activity.start, std::min(activity.end, pipeline_.start)};
    widen(prepared_.emplace(activity.recorder, before).first->second, before);
    all_.end = std::max(all_.end, activity.end);
  } else {
    widen(all_, activity);
  }
  std::vector<TimeSpan>& outside = outside_[activity.name][activity.recorder];
  if (time.before > 0) outside.push_back({activity.start, activity.start + time.before});
  if (time.after > 0) outside.push_back({activity.end - time.after, activity.end});
  if (!is_named_like_collective(activity.name)) return;
  OuterTime& in_collectives = in_collectives_[activity.recorder];
  in_collectives.before += time.before;
  in_collectives.after += time.after;
}

TimeSpan ReplicaStep::all() const {
  TimeSpan all = all_;
  for (const auto& [_, before] : prepared_)
    all.start = std::min(all.start, pipeline_.start - before.length());
  return all;
}

Nanos ReplicaStep::whole() const {
  if (!marked_) return std::max(all().length(), longest_range_);
  return std::max(marked_->length(), pipeline_.length());
}

std::vector<std::pair<std::string, Nanos>> ReplicaStep::outer_parts() const {
  std::vector<std::pair<std::string, Nanos>> parts;
  for (const auto& [name, of_ranks] : outside_) {
    Nanos longest = 0;
    for (const auto& [_, spans] : of_ranks) longest = std::max(longest, cover(spans));
    if (longest > 0) parts.emplace_back(name, longest);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return parts;
}

Nanos ReplicaStep::time_in_collectives() const {
  Nanos longest = 0;
  for (const auto& [_, time] : in_collectives_) longest = std::max(longest, time.sum());
  return longest;
}

Nanos ReplicaStep::time_in_collectives_before() const {
  Nanos longest = 0;
  for (const auto& [_, time] : in_collectives_) longest = std::max(longest, time.before);
  return longest;
}

std::map<std::int64_t, std::map<std::int32_t, ReplicaStep>> group_replicas(
    const PipelineExtents& pipelines, const std::vector<ObservedActivity>& activities) {
  std::map<std::int64_t, std::map<std::int32_t, ReplicaStep>> steps;
  for (const auto& [key, pipeline] : pipelines)
    steps[key.second][key.first] = ReplicaStep(pipeline);
  for (const ObservedActivity& activity : activities) {
    const auto step = steps.find(activity.step);
    if (step == steps.end()) continue;
    const auto replica = step->second.find(activity.replica);
    if (replica != step->second.end()) replica->second.add(activity);
  }
  return steps;
}

}  // namespace bubblescope::traces
