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

/// From the first op of a step to its last, over the ranks of a file: files may have clocks of
/// their own.
using StepSpans = std::map<std::pair<std::int64_t, std::int32_t>, TimeSpan>;  // by step, recorder

StepSpans find_step_spans(const ObservedTrace& trace) {
  StepSpans spans;
  for (const ObservedOp& observed : trace.ops) {
    if (!is_compute(observed.op.kind)) continue;
    const std::pair place(observed.step, observed.recorder);
    widen(spans.emplace(place, TimeSpan{observed.start, observed.end}).first->second, observed);
  }
  std::map<std::pair<std::int64_t, std::string>, TimeSpan> of_files;  // by step and file
  const auto file_of = [&](const std::pair<std::int64_t, std::int32_t>& place) {
    return std::pair(place.first, trace.recorders[static_cast<std::size_t>(place.second)].where);
  };
  for (const auto& [place, span] : spans)
    widen(of_files.emplace(file_of(place), span).first->second, span);
  for (auto& [place, span] : spans) span = of_files.at(file_of(place));
  return spans;
}

/// The time of all ranks in all pipelines, each of which takes as long as its longest part in one
/// file: that of its first rank begins and ends it.
double sum_pipelines(const StepSpans& spans, std::int64_t ranks) {
  std::map<std::int64_t, Nanos> steps;
  for (const auto& [place, span] : spans) {
    Nanos& longest = steps[place.first];
    longest = std::max(longest, span.length());
  }
  double sum = 0;
  for (const auto& [_, longest] : steps) sum += static_cast<double>(longest);
  return sum * static_cast<double>(ranks);
}

/// Where an activity lies beside the ops of its rank.
struct PlaceBesideOps {
  std::vector<TimeSpan> in_steps = {};  ///< while the rank or another one runs its step
  bool is_between_ops = false;          ///< of one step of its rank
  bool leaves_steps = false;            ///< some of it lies in no step
};

/// Nothing where the activity lies in ops alone, or contains one.
PlaceBesideOps find_place(const ObservedActivity& activity, const OpsInOrder& ops,
                          const StepSpans& steps) {
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
    const TimeSpan& step = steps.at({op->step, activity.recorder});
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

/// On threads that run ops: all activities that may be work. On others, which may be those of a
/// host: those that state a micro-batch.
StrayNames find_stray_names(const ObservedTrace& trace, const std::vector<OpsInOrder>& ops,
                            const StepSpans& steps, bool on_threads_of_ops) {
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

struct ShownNames {
  std::int64_t count = 0;
  std::string text;
};

/// Those that take the longest first.
ShownNames show(const StrayNames& names) {
  std::vector<const StrayName*> order;
  ShownNames all;
  for (const auto& [_, name] : names) {
    order.push_back(&name);
    all.count += name.count;
  }
  std::stable_sort(order.begin(), order.end(), [](const StrayName* left, const StrayName* right) {
    return left->time > right->time;
  });
  std::vector<std::string> shown;
  for (const StrayName* const name : order)
    if (shown.size() < kShownNames)
      shown.push_back(fmt::format("{} ({})", quote(name->example), name->count));
  if (order.size() > kShownNames) shown.emplace_back("others");
  all.text = fmt::format("{}", fmt::join(shown, ", "));
  return all;
}

}  // namespace

StrayWork describe_stray_work(const ObservedTrace& trace) {
  const std::vector<OpsInOrder> ops = computes_by_recorder(trace);
  const StepSpans steps = find_step_spans(trace);
  const auto ranks =
      std::count_if(ops.begin(), ops.end(), [](const OpsInOrder& own) { return !own.empty(); });
  const double all = sum_pipelines(steps, ranks);
  if (all <= 0) return {};
  StrayWork work;
  const StrayNames names = find_stray_names(trace, ops, steps, true);
  if (const double share = sum_stray(names) / all; share > kMaxStrayTime) {
    const ShownNames shown = show(names);
    work.fault = fmt::format(
        "{} slice(s) between the ops, on their threads, take {:.1f} % of the pipeline's time, "
        "which would count as idle: {}; say in `rules` which ops they are, or that they are of "
        "kind ignore",
        shown.count, 100 * share, shown.text);
  }
  const StrayNames others = find_stray_names(trace, ops, steps, false);
  if (const double share = sum_stray(others) / all; share > kMaxStrayTime) {
    const ShownNames shown = show(others);
    work.doubt = fmt::format(
        "{} slice(s) that state a micro-batch run on other threads while their rank runs no op, "
        "for {:.1f} % of the pipeline's time, which counts as idle: {}; say in `rules` which ops "
        "they are, or that they are of kind ignore",
        shown.count, 100 * share, shown.text);
  }
  return work;
}

}  // namespace bubblescope::traces
