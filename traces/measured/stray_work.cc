// Compares slices with the gaps between ops.
#include "traces/measured/stray_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/files/quote.h"
#include "traces/measured/activity_names.h"
#include "traces/measured/device_contradictions.h"
#include "traces/measured/longest_names.h"
#include "traces/measured/ops_in_order.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// The extents of steps over the ranks of a file: files may have clocks of their own.
StepExtents find_extents_in_files(const ObservedTrace& trace) {
  StepExtents extents = find_step_extents(trace);
  std::map<std::pair<std::int64_t, std::string>, TimeSpan> of_files;  // by step and file
  const auto file_of = [&](const std::pair<std::int32_t, std::int64_t>& place) {
    return std::pair(place.second, trace.recorders[static_cast<std::size_t>(place.first)].where);
  };
  for (const auto& [place, extent] : extents)
    widen(of_files.emplace(file_of(place), extent).first->second, extent);
  for (auto& [place, extent] : extents) extent = of_files.at(file_of(place));
  return extents;
}

/// Returns the time of all ranks in all steps. A step takes as long as the longest extent in its
/// file, which is that of the first rank.
double sum_pipelines(const StepExtents& extents, std::int64_t ranks) {
  std::map<std::int64_t, Nanos> steps;
  for (const auto& [place, extent] : extents) {
    Nanos& longest = steps[place.second];
    longest = std::max(longest, extent.length());
  }
  double sum = 0;
  for (const auto& [_, longest] : steps) sum += static_cast<double>(longest);
  return sum * static_cast<double>(ranks);
}

/// The place of an activity beside the ops of its rank.
struct PlaceBesideOps {
  std::vector<TimeSpan> in_steps = {};  ///< while the rank or another one runs its step
  bool is_between_ops = false;          ///< of one step of its rank
  bool leaves_steps = false;            ///< some of it lies in no step
};

/// The place of an activity. Empty where it lies in ops alone, or contains one.
PlaceBesideOps find_place(const ObservedActivity& activity, const OpsInOrder& ops,
                          const StepExtents& steps) {
  const auto next =
      std::upper_bound(ops.begin(), ops.end(), activity.start,
                       [](Nanos time, const ObservedOp* op) { return time < op->start; });
  const ObservedOp* const before = next == ops.begin() ? nullptr : *std::prev(next);
  const ObservedOp* const after = next == ops.end() ? nullptr : *next;
  if (after != nullptr && activity.end >= after->end) return {};
  TimeSpan free{activity.start, activity.end};
  if (before != nullptr) free.start = std::max(free.start, before->end);
  if (after != nullptr) free.end = std::min(free.end, after->start);
  if (free.length() <= 0) return {};
  PlaceBesideOps place;
  place.is_between_ops = before != nullptr && after != nullptr && before->step == after->step;
  for (const ObservedOp* const op : {before, after}) {
    if (op == nullptr) continue;
    const TimeSpan& step = steps.at({activity.recorder, op->step});
    const TimeSpan part{std::max(free.start, step.start), std::min(free.end, step.end)};
    if (part.length() > 0) place.in_steps.push_back(part);
  }
  place.leaves_steps = cover(place.in_steps) < free.length();
  return place;
}

/// Activities of one name.
struct StrayName {
  std::string example;
  std::int64_t count = 0;
  Nanos time = 0;
  std::map<std::int32_t, std::vector<TimeSpan>> parts = {};  ///< by recorder
  bool is_of_step = false;  ///< one lies between the ops of its rank, or states a micro-batch
  bool leaves_steps = false;

  /// Work before and after the ops of a step lies beyond them on the first rank at least.
  bool is_stray() const { return count > 0 && (is_of_step || !leaves_steps); }
};

using StrayNames = std::map<std::string, StrayName>;  // without digits

/// The names of activities that may be work: all of those on threads that run ops; on other
/// threads, which may be a host's, those that state a micro-batch.
StrayNames find_stray_names(const ObservedTrace& trace, const std::vector<OpsInOrder>& ops,
                            const StepExtents& steps, bool on_threads_of_ops) {
  std::map<std::string, bool> are_work;  // by name: many repeat
  const auto is_work = [&](const std::string& name) {
    const auto [known, is_new] = are_work.try_emplace(name);
    if (is_new) known->second = !is_outer_activity(name) && !is_message_or_waiting(name);
    return known->second;
  };
  StrayNames names;
  for (const ObservedActivity& activity : trace.activities) {
    if (activity.runs_between_ops != on_threads_of_ops) continue;
    if (!on_threads_of_ops && !activity.has_microbatch) continue;
    const PlaceBesideOps place =
        find_place(activity, ops[static_cast<std::size_t>(activity.recorder)], steps);
    if ((place.in_steps.empty() && !place.leaves_steps) || !is_work(activity.name)) continue;
    StrayName& name =
        names.emplace(without_digits(activity.name), StrayName{activity.name}).first->second;
    name.is_of_step = name.is_of_step || place.is_between_ops || activity.has_microbatch;
    name.leaves_steps = name.leaves_steps || place.leaves_steps;
    if (place.in_steps.empty()) continue;
    ++name.count;
    name.time += cover(place.in_steps);
    std::vector<TimeSpan>& parts = name.parts[activity.recorder];
    parts.insert(parts.end(), place.in_steps.begin(), place.in_steps.end());
  }
  std::erase_if(names, [](const auto& name) { return !name.second.is_stray(); });
  return names;
}

/// The time of these activities on all ranks; those of one rank may overlap.
double sum_stray(const StrayNames& names) {
  std::map<std::int32_t, std::vector<TimeSpan>> parts;
  for (const auto& [_, name] : names)
    for (const auto& [recorder, own] : name.parts) {
      std::vector<TimeSpan>& all = parts[recorder];
      all.insert(all.end(), own.begin(), own.end());
    }
  double stray = 0;
  for (const auto& [_, of_rank] : parts) stray += static_cast<double>(cover(of_rank));
  return stray;
}

/// Says in a sentence of this form how many activities take which part of the pipelines' time, and
/// which; nullopt where that is little.
std::optional<std::string> describe(const StrayNames& names, double pipelines, const char* form) {
  const double share = sum_stray(names) / pipelines;
  if (share <= kMaxStrayTime) return {};
  std::vector<TimedName> shown;
  std::int64_t count = 0;
  for (const auto& [_, name] : names) {
    count += name.count;
    shown.push_back({fmt::format("{} ({})", quote(name.example), name.count), name.time});
  }
  return fmt::format(fmt::runtime(form), counted(count, "slice"), 100 * share,
                     list_longest(std::move(shown)));
}

}  // namespace

StrayWork describe_stray_work(const ObservedTrace& trace) {
  const std::vector<OpsInOrder> ops = computes_by_recorder(trace);
  const StepExtents steps = find_extents_in_files(trace);
  const auto ranks =
      std::count_if(ops.begin(), ops.end(), [](const OpsInOrder& own) { return !own.empty(); });
  const double all = sum_pipelines(steps, ranks);
  if (all <= 0) return {};
  StrayWork work;
  work.fault = describe(find_stray_names(trace, ops, steps, true), all,
                        "{} between the ops, on their threads, took {:.1f} % of the "
                        "pipeline's time, which would count as idle: {}; say in `rules` which ops "
                        "they are, or that they are of kind ignore");
  work.doubt = describe(find_stray_names(trace, ops, steps, false), all,
                        "{} with a micro-batch on other threads took {:.1f} % of the "
                        "pipeline's time while the rank ran no op, which counts as "
                        "idle: {}; say in `rules` which ops they are, or that they are of kind "
                        "ignore");
  return work;
}

}  // namespace bubblescope::traces
