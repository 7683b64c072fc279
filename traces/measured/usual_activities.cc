// Counts the steps in which activities occur.
#include "traces/measured/usual_activities.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/measured/activity_names.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/collective_names.h"

namespace bubblescope::traces {

namespace {

/// The first op of every step of a rank, by time.
using StepStarts = std::map<Nanos, std::int64_t>;

std::map<std::int32_t, StepStarts> find_step_starts(const ObservedTrace& trace) {
  std::map<std::pair<std::int32_t, std::int64_t>, Nanos> first;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    Nanos& start =
        first.emplace(std::pair(observed.recorder, observed.step), observed.start).first->second;
    start = std::min(start, observed.start);
  }
  std::map<std::int32_t, StepStarts> starts;
  for (const auto& [key, start] : first) starts[key.first].emplace(start, key.second);
  return starts;
}

/// Whether an activity lies beside the ops of its own step alone.
bool fits_step(const ObservedActivity& activity, const StepStarts& starts) {
  const bool begins_before = activity.start < starts.begin()->first;
  if (begins_before && !is_loading_data(activity.name) && !is_named_like_collective(activity.name))
    return false;
  auto next = starts.upper_bound(activity.start);
  while (next != starts.end() && next->second == activity.step) ++next;
  return next == starts.end() || activity.end <= next->first + kClockTolerance;
}

}  // namespace

ObservedTrace keep_usual_activities(ObservedTrace trace) {
  const std::map<std::int32_t, StepStarts> starts = find_step_starts(trace);
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    if (activity.has_step) return false;
    const auto own = starts.find(activity.recorder);
    return own == starts.end() || !fits_step(activity, own->second);
  });
  using Name = std::pair<std::int32_t, std::string>;  // by recorder
  std::map<Name, std::set<std::int64_t>> steps;
  for (const ObservedActivity& activity : trace.activities)
    if (!activity.has_step)
      steps[{activity.recorder, without_digits(activity.name)}].insert(activity.step);
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    if (activity.has_step) return false;
    const std::size_t seen = steps.at({activity.recorder, without_digits(activity.name)}).size();
    return 2 * seen < starts.at(activity.recorder).size();
  });
  return trace;
}

}  // namespace bubblescope::traces
