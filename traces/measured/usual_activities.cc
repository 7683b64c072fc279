// Counts the steps in which activities occur.
#include "traces/measured/usual_activities.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/collective_names.h"
#include "traces/measured/longest_names.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// The first op of every step of a rank, by time.
using StepsByStart = std::map<Nanos, std::int64_t>;

std::map<std::int32_t, StepsByStart> list_steps_by_start(const StepExtents& extents) {
  std::map<std::int32_t, StepsByStart> starts;
  for (const auto& [key, extent] : extents) starts[key.first].emplace(extent.start, key.second);
  return starts;
}

/// Whether an activity lies beside the ops of its own step alone.
bool fits_step(const ObservedActivity& activity, const StepsByStart& starts) {
  const bool begins_before = activity.start < starts.begin()->first;
  if (begins_before && !is_loading_data(activity.name) && !is_named_like_collective(activity.name))
    return false;
  auto next = starts.upper_bound(activity.start);
  while (next != starts.end() && next->second == activity.step) ++next;
  return next == starts.end() || activity.end <= next->first + kClockTolerance;
}

/// The time of activities of one name on one rank.
struct RareName {
  std::string example;
  Nanos time = 0;
};

using Name = std::pair<std::int32_t, std::string>;  // by recorder, without digits

/// Names those that take over 1 % of the time of their rank's steps, the longest first; nullopt if
/// there are none.
std::optional<std::string> describe_rare(const std::map<Name, RareName>& rare,
                                         const StepExtents& extents) {
  constexpr Nanos kOfSteps = 100;
  std::map<std::int32_t, Nanos> steps;  // by recorder
  for (const auto& [key, extent] : extents) steps[key.first] += extent.length();
  std::map<std::string, RareName> longest;  // over the ranks
  for (const auto& [name, activity] : rare) {
    if (activity.time * kOfSteps < steps.at(name.first)) continue;
    RareName& known = longest.emplace(name.second, activity).first->second;
    known.time = std::max(known.time, activity.time);
  }
  if (longest.empty()) return {};
  std::vector<TimedName> named;
  for (const auto& [_, activity] : longest)
    named.push_back({fmt::format("{} ({})", quote(activity.example), format_time(activity.time)),
                     activity.time});
  return fmt::format(
      "work of fewer than half of the steps is in no step, with its time on the rank where it took "
      "the longest: {}",
      list_longest(std::move(named)));
}

}  // namespace

ObservedTrace keep_usual_activities(ObservedTrace trace) {
  const StepExtents extents = find_step_extents(trace);
  const std::map<std::int32_t, StepsByStart> starts = list_steps_by_start(extents);
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    if (activity.has_step) return false;
    const auto own = starts.find(activity.recorder);
    return own == starts.end() || !fits_step(activity, own->second);
  });
  std::map<Name, std::set<std::int64_t>> steps;
  for (const ObservedActivity& activity : trace.activities)
    if (!activity.has_step)
      steps[{activity.recorder, without_digits(activity.name)}].insert(activity.step);
  std::map<Name, RareName> rare;
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    if (activity.has_step) return false;
    const Name name(activity.recorder, without_digits(activity.name));
    if (2 * steps.at(name).size() >= starts.at(activity.recorder).size()) return false;
    const TimeSpan& ops = extents.at({activity.recorder, activity.step});
    if (activity.start < ops.start || activity.end > ops.end)
      rare.emplace(name, RareName{activity.name}).first->second.time +=
          activity.end - activity.start;
    return true;
  });
  if (std::optional<std::string> note = describe_rare(rare, extents))
    trace.remarks.notes.push_back(*std::move(note));
  return trace;
}

}  // namespace bubblescope::traces
