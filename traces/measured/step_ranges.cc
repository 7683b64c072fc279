// Compares slices with the ops of steps.
#include "traces/measured/step_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/op_names.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// A longer range than what it holds, by 1 %, may hold more.
constexpr Nanos kOfRange = 100;

using Place = std::pair<std::int32_t, std::int32_t>;  // recorder, replica
/// From the first op of every step to its last.
using Extents = std::map<std::int64_t, TimeSpan>;
using Ranges = std::vector<ObservedActivity>;
/// Those of one rank with one name.
using RangesByName = std::map<std::pair<Place, std::string>, Ranges>;

std::map<Place, Extents> find_extents(const ObservedTrace& trace) {
  std::map<Place, Extents> extents;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    const TimeSpan own{observed.start, observed.end};
    Extents& steps = extents[{observed.recorder, observed.replica}];
    widen(steps.emplace(observed.step, own).first->second, own);
  }
  return extents;
}

bool overlap(const TimeSpan& extent, const ObservedActivity& range) {
  return extent.start < range.end && range.start < extent.end;
}

/// Gives each range its step; false unless each step has one, which holds it and no other.
bool give_steps(Ranges& ranges, const Extents& extents) {
  if (ranges.size() != extents.size()) return false;
  sort_by_start(ranges);
  std::vector<std::pair<std::int64_t, TimeSpan>> steps(extents.begin(), extents.end());
  std::sort(steps.begin(), steps.end(), [](const auto& left, const auto& right) {
    return left.second.start < right.second.start;
  });
  for (std::size_t at = 0; at < ranges.size(); ++at) {
    const TimeSpan& own = steps[at].second;
    if (own.start < ranges[at].start || ranges[at].end < own.end) return false;
    if (at > 0 && overlap(steps[at - 1].second, ranges[at])) return false;
    if (at + 1 < steps.size() && overlap(steps[at + 1].second, ranges[at])) return false;
    ranges[at].step = steps[at].first;
  }
  return true;
}

/// Whether a name marks steps, with a number or without.
bool marks_steps(const std::string& name) {
  return parse_step_mark(name) || parse_step_mark(name + " 0");
}

/// Whether a range is longer than its ops and the activities of its rank that it holds.
bool holds_more(const ObservedActivity& range, TimeSpan held,
                const std::vector<ObservedActivity>& activities) {
  for (const ObservedActivity& activity : activities)
    if (activity.recorder == range.recorder && activity.replica == range.replica &&
        range.start <= activity.start && activity.end <= range.end)
      widen(held, activity);
  return range.end - range.start > held.length() + held.length() / kOfRange;
}

std::string describe(const std::string& name) {
  return fmt::format(
      "{} holds all ops of a step on its rank and lasts over 1 % longer than what it holds, so a "
      "step may be longer than shown; say in `rules` that it is of kind step, or of kind ignore",
      quote(name));
}

}  // namespace

ObservedTrace with_step_ranges(ObservedTrace trace, std::vector<ObservedActivity> around_ops) {
  if (around_ops.empty()) return trace;
  const std::map<Place, Extents> extents = find_extents(trace);
  RangesByName by_name;
  for (ObservedActivity& range : around_ops) {
    const Place place{range.recorder, range.replica};
    by_name[{place, without_digits(range.name)}].push_back(std::move(range));
  }
  std::map<std::string, std::string> doubts;  // by name without digits: an example
  Ranges marks;
  for (auto& [key, ranges] : by_name) {
    const auto steps = extents.find(key.first);
    if (steps == extents.end() || !give_steps(ranges, steps->second)) continue;
    if (marks_steps(ranges.front().name)) {
      marks.insert(marks.end(), ranges.begin(), ranges.end());
      continue;
    }
    if (ranges.size() < 2 || doubts.contains(key.second)) continue;
    const Extents& own = steps->second;
    const auto exceeds = [&own](const ObservedActivity& range) {
      return range.end - range.start - own.at(range.step).length();
    };
    const ObservedActivity& longest =
        *std::max_element(ranges.begin(), ranges.end(),
                          [&](const ObservedActivity& left, const ObservedActivity& right) {
                            return exceeds(left) < exceeds(right);
                          });
    if (holds_more(longest, own.at(longest.step), trace.activities))
      doubts.emplace(key.second, longest.name);
  }
  for (const auto& [_, name] : doubts) trace.remarks.doubts.push_back(describe(name));
  trace.activities.insert(trace.activities.end(), std::make_move_iterator(marks.begin()),
                          std::make_move_iterator(marks.end()));
  return trace;
}

}  // namespace bubblescope::traces
