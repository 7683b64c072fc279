// Compares activities with the ops of earlier steps.
#include "traces/measured/work_ahead.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// The ranks of a replica that share a clock: those of a file, by number.
using Group = std::pair<std::int32_t, std::int32_t>;
/// By step: when the ops of all steps that began before it have ended, and no later than its own
/// ops begin.
using Ends = std::map<std::int64_t, Nanos>;

/// Returns for each recorder the number of its file.
std::vector<std::int32_t> number_files(const ObservedTrace& trace) {
  std::map<std::string, std::int32_t> numbers;
  std::vector<std::int32_t> files;
  for (const Recorder& recorder : trace.recorders)
    files.push_back(
        numbers.emplace(recorder.where, static_cast<std::int32_t>(numbers.size())).first->second);
  return files;
}

std::map<Group, Ends> find_earlier_ends(const ObservedTrace& trace,
                                        const std::vector<std::int32_t>& files) {
  std::map<Group, std::vector<std::pair<std::int64_t, TimeSpan>>> groups;
  const auto key_of = [&](const ObservedOp& op) {
    const std::int32_t file = files[static_cast<std::size_t>(op.recorder)];
    return std::optional(std::tuple(file, op.replica, op.step));
  };
  for (const auto& [key, extent] : find_extents(trace.ops, key_of)) {
    const auto& [file, replica, step] = key;
    groups[{file, replica}].emplace_back(step, extent);
  }
  std::map<Group, Ends> ends;
  for (auto& [group, steps] : groups) {
    std::stable_sort(steps.begin(), steps.end(), [](const auto& left, const auto& right) {
      return left.second.start < right.second.start;
    });
    Nanos last = std::numeric_limits<Nanos>::min();
    for (const auto& [step, extent] : steps) {
      ends[group][step] = std::min(last, extent.start);
      last = std::max(last, extent.end);
    }
  }
  return ends;
}

}  // namespace

ObservedTrace without_work_ahead(ObservedTrace trace) {
  if (trace.activities.empty()) return trace;
  const std::vector<std::int32_t> files = number_files(trace);
  const std::map<Group, Ends> ends = find_earlier_ends(trace, files);
  // When the ops of earlier steps end, where an activity begins before.
  const auto find_end = [&](const ObservedActivity& activity) -> std::optional<Nanos> {
    if (activity.is_whole_step) return {};
    const std::int32_t file = files[static_cast<std::size_t>(activity.recorder)];
    const auto group = ends.find({file, activity.replica});
    if (group == ends.end()) return {};
    const auto earlier = group->second.find(activity.step);
    if (earlier == group->second.end() || earlier->second <= activity.start) return {};
    return earlier->second;
  };
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    const std::optional<Nanos> end = find_end(activity);
    return end && activity.end <= *end;
  });
  for (ObservedActivity& activity : trace.activities)
    activity.start = find_end(activity).value_or(activity.start);
  return trace;
}

}  // namespace bubblescope::traces
