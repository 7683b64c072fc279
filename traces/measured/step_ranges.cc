// Compares slices with the ops of steps.
#include "traces/measured/step_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/longest_names.h"
#include "traces/measured/op_names.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

using Place = std::pair<std::int32_t, std::int32_t>;  // recorder, replica
/// A step of a rank, from its first op to its last.
using Extent = std::pair<std::int64_t, TimeSpan>;
using Extents = std::vector<Extent>;  // by start
using Ranges = std::vector<ObservedActivity>;
/// Those of one rank with one name.
using RangesByName = std::map<std::pair<Place, std::string>, Ranges>;

std::map<Place, Extents> list_extents(const ObservedTrace& trace) {
  std::map<Place, Extents> by_place;
  const auto key_of = [](const ObservedOp& op) {
    return std::optional(std::tuple(op.recorder, op.replica, op.step));
  };
  for (const auto& [key, span] : find_extents(trace.ops, key_of)) {
    const auto& [recorder, replica, step] = key;
    by_place[{recorder, replica}].emplace_back(step, span);
  }
  for (auto& [_, extents] : by_place)
    std::stable_sort(extents.begin(), extents.end(), [](const Extent& left, const Extent& right) {
      return left.second.start < right.second.start;
    });
  return by_place;
}

bool overlap(const TimeSpan& extent, const ObservedActivity& range) {
  return extent.start < range.end && range.start < extent.end;
}

/// Gives each range its step; false unless each holds all ops of one step and of no other, which is
/// the one that it states.
bool give_steps(Ranges& ranges, const Extents& steps) {
  if (ranges.size() > steps.size()) return false;
  sort_by_start(ranges);
  std::size_t at = 0;
  for (ObservedActivity& range : ranges) {
    while (at < steps.size() && steps[at].second.end <= range.start) ++at;
    if (at == steps.size()) return false;
    const TimeSpan& own = steps[at].second;
    if (own.start < range.start || range.end < own.end) return false;
    if (at > 0 && overlap(steps[at - 1].second, range)) return false;
    if (at + 1 < steps.size() && overlap(steps[at + 1].second, range)) return false;
    if (range.has_step && range.step != steps[at].first) return false;
    range.step = steps[at++].first;
  }
  return true;
}

/// Whether a name marks steps, with a number or without.
bool marks_steps(const std::string& name) {
  return parse_step_mark(name) || parse_step_mark(name + " 0");
}

/// Describes slices that state a step and last over the ops of others, such as "async_save" on a
/// thread of its own.
std::optional<std::string> describe_beside_steps(const std::map<std::string, TimedName>& names) {
  if (names.empty()) return {};
  std::vector<TimedName> named;
  for (const auto& [_, name] : names)
    named.push_back({fmt::format("{} ({})", quote(name.text), format_time(name.time)), name.time});
  return "work that lasts over the ops of other steps is in no step, with its time on the rank "
         "where it took the longest: " +
         list_longest(std::move(named));
}

}  // namespace

ObservedTrace with_step_ranges(ObservedTrace trace, std::vector<ObservedActivity> around_ops) {
  if (around_ops.empty()) return trace;
  const std::map<Place, Extents> extents = list_extents(trace);
  RangesByName by_name;
  for (ObservedActivity& range : around_ops) {
    const Place place{range.recorder, range.replica};
    by_name[{place, without_digits(range.name)}].push_back(std::move(range));
  }
  std::map<std::string, TimedName> beside;
  for (auto& [key, ranges] : by_name) {
    const auto steps = extents.find(key.first);
    if (steps == extents.end()) continue;
    if (!give_steps(ranges, steps->second)) {
      Nanos time = 0;
      for (const ObservedActivity& range : ranges)
        if (range.has_step) time += range.end - range.start;
      TimedName& longest = beside[key.second];
      if (time > longest.time) longest = {ranges.front().name, time};
      continue;
    }
    const bool are_marks =
        marks_steps(ranges.front().name) && ranges.size() == steps->second.size();
    if (!are_marks && ranges.size() < 2) continue;
    for (ObservedActivity& range : ranges) {
      range.has_step = true;
      range.has_other_name = !are_marks;
      trace.activities.push_back(std::move(range));
    }
  }
  std::erase_if(beside, [](const auto& name) { return name.second.time == 0; });
  if (std::optional<std::string> note = describe_beside_steps(beside))
    trace.remarks.notes.push_back(*std::move(note));
  return trace;
}

}  // namespace bubblescope::traces
