// Compares slices with the gaps between ops.
#include "traces/measured/stray_work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/device_contradictions.h"
#include "traces/measured/ops_in_order.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

constexpr std::size_t kShownNames = 3;

/// The part of an activity in a gap between two ops of a step; empty where it has none, or contains
/// an op.
TimeSpan find_part_in_gap(const ObservedActivity& activity, const OpsInOrder& ops) {
  const auto next =
      std::upper_bound(ops.begin(), ops.end(), activity.start,
                       [](Nanos time, const ObservedOp* op) { return time < op->start; });
  if (next == ops.begin() || next == ops.end()) return {};
  const ObservedOp& before = **std::prev(next);
  if (before.step != (*next)->step || activity.end >= (*next)->end) return {};
  const TimeSpan part{std::max(activity.start, before.end), std::min(activity.end, (*next)->start)};
  return part.length() > 0 ? part : TimeSpan{};
}

/// The time of all ranks in all pipelines. Files may have clocks of their own, so a pipeline takes
/// as long as its longest part in one file: that of its first rank begins and ends it.
double sum_pipelines(const ObservedTrace& trace, std::int64_t ranks) {
  std::map<std::pair<std::int64_t, std::int32_t>, TimeSpan> of_recorders;  // by step and recorder
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    const std::pair place(observed.step, observed.recorder);
    widen(of_recorders.emplace(place, TimeSpan{observed.start, observed.end}).first->second,
          observed);
  }
  std::map<std::pair<std::int64_t, std::string>, TimeSpan> of_files;  // by step and file
  for (const auto& [place, span] : of_recorders) {
    const std::string& file = trace.recorders[static_cast<std::size_t>(place.second)].where;
    widen(of_files.emplace(std::pair(place.first, file), span).first->second, span);
  }
  std::map<std::int64_t, Nanos> steps;
  for (const auto& [place, span] : of_files) {
    Nanos& longest = steps[place.first];
    longest = std::max(longest, span.length());
  }
  double sum = 0;
  for (const auto& [_, longest] : steps) sum += static_cast<double>(longest);
  return sum * static_cast<double>(ranks);
}

struct StrayName {
  std::string example;
  std::int64_t count = 0;
  Nanos time = 0;
};

std::string describe(const std::map<std::string, StrayName>& names, double share) {
  std::vector<StrayName> order;
  std::int64_t count = 0;
  for (const auto& [_, name] : names) {
    order.push_back(name);
    count += name.count;
  }
  std::stable_sort(order.begin(), order.end(), [](const StrayName& left, const StrayName& right) {
    return left.time > right.time;
  });
  std::vector<std::string> shown;
  for (const StrayName& name : order)
    if (shown.size() < kShownNames)
      shown.push_back(fmt::format("{} ({})", quote(name.example), name.count));
  if (order.size() > kShownNames) shown.emplace_back("others");
  return fmt::format(
      "{} slice(s) between the ops, on their threads, take {:.1f} % of the pipeline's time, which "
      "would count as idle: {}; say in `rules` which ops they are, or that they are of kind ignore",
      count, 100 * share, fmt::join(shown, ", "));
}

}  // namespace

std::optional<std::string> describe_stray_work(const ObservedTrace& trace) {
  const std::vector<OpsInOrder> ops = computes_by_recorder(trace);
  std::map<std::int32_t, std::vector<TimeSpan>> parts;
  std::map<std::string, StrayName> names;
  std::map<std::string, bool> are_work;  // by name: many repeat
  const auto is_work = [&](const std::string& name) {
    const auto [known, is_new] = are_work.try_emplace(name);
    if (is_new) known->second = !is_outer_activity(name) && !is_message_or_waiting(name);
    return known->second;
  };
  for (const ObservedActivity& activity : trace.activities) {
    if (!activity.runs_between_ops) continue;
    const TimeSpan part =
        find_part_in_gap(activity, ops[static_cast<std::size_t>(activity.recorder)]);
    if (part.length() == 0 || !is_work(activity.name)) continue;
    parts[activity.recorder].push_back(part);
    StrayName& name =
        names.emplace(without_digits(activity.name), StrayName{activity.name}).first->second;
    ++name.count;
    name.time += part.length();
  }
  double stray = 0;
  for (const auto& [_, of_rank] : parts) stray += static_cast<double>(cover(of_rank));
  const auto ranks =
      std::count_if(ops.begin(), ops.end(), [](const OpsInOrder& own) { return !own.empty(); });
  const double all = sum_pipelines(trace, ranks);
  if (stray <= 0 || all <= 0) return {};
  const double share = stray / all;
  if (share <= kMaxStrayTime) return {};
  return describe(names, share);
}

}  // namespace bubblescope::traces
