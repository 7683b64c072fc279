// Compares the orders of all recorders.
#include "traces/measured/complete_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/missing_ends.h"
#include "traces/measured/open_chunks.h"
#include "traces/measured/ops_in_order.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/usual_activities.h"
#include "traces/measured/work_ahead.h"

namespace bubblescope::traces {

namespace {

/// The numbers of micro-batches after which none is in flight.
std::set<std::int32_t> find_empty_times(const OpsInOrder& ops, const std::string& where) {
  std::set<std::int32_t> empty;
  std::int32_t forwards = 0;
  std::int32_t backwards = 0;
  for (const ObservedOp* observed : ops) {
    forwards += observed->op.kind == OpKind::kForward ? 1 : 0;
    backwards += gives_input_grad(observed->op.kind) ? 1 : 0;
    if (backwards > forwards)
      throw Error(where +
                  ": a backward precedes its forward: the recording begins within a step; record "
                  "whole steps");
    if (backwards == forwards) empty.insert(forwards);
  }
  if (forwards != backwards)
    throw Error(fmt::format(
        "{}: there are {} forwards but {} backwards, so that steps cannot be distinguished: ops "
        "are missing, or have no range of their own (DeepSpeed names backwards on the last stage "
        "only, and no micro-batch; annotate_deepspeed() names all); annotate them "
        "(tools/hooks/bubblescope_hooks.py)",
        where, forwards, backwards));
  return empty;
}

std::string where_of(const ObservedTrace& trace, std::size_t recorder) {
  std::size_t of_file = 0;
  for (std::size_t at = 0; at < recorder; ++at)
    of_file += trace.recorders[at].where == trace.recorders[recorder].where ? 1 : 0;
  const std::string& file = trace.recorders[recorder].where;
  return of_file == 0 ? file : fmt::format("{}, its process {}", file, of_file + 1);
}

std::int32_t last_of(const std::set<std::int32_t>& counts) {
  return counts.empty() ? 0 : *counts.rbegin();
}

/// The micro-batch counts at which steps end on all recorders.
std::vector<std::int32_t> find_step_ends(const ObservedTrace& trace,
                                         const std::vector<OpsInOrder>& by_recorder) {
  std::set<std::int32_t> ends;
  for (std::size_t at = 0; at < by_recorder.size(); ++at) {
    const std::set<std::int32_t> empty = find_empty_times(by_recorder[at], where_of(trace, at));
    if (at == 0) {
      ends = empty;
      continue;
    }
    if (last_of(empty) != last_of(ends))
      throw Error(
          fmt::format("{} has {} micro-batches, but {} has {}: record the same steps on all ranks",
                      where_of(trace, at), last_of(empty), where_of(trace, 0), last_of(ends)));
    std::set<std::int32_t> common;
    std::set_intersection(ends.begin(), ends.end(), empty.begin(), empty.end(),
                          std::inserter(common, common.end()));
    ends = std::move(common);
  }
  return {ends.begin(), ends.end()};
}

/// Sorts recorders by their first forwards; false unless each begins after the one before ended.
bool sort_by_first_forward(const std::vector<OpsInOrder>& by_recorder,
                           std::vector<std::size_t>& order) {
  constexpr Nanos kOrderTolerance = 10'000;
  const auto first = [&](std::size_t at) { return by_recorder[at].front(); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
    return first(left)->start < first(right)->start;
  });
  for (std::size_t at = 1; at < order.size(); ++at)
    if (first(order[at])->start < first(order[at - 1])->end - kOrderTolerance) return false;
  return true;
}

/// If all traces but one state their rank, the other one is of the rank that is left. If several do
/// not, nothing shows which is which.
ObservedTrace take_free_ranks(ObservedTrace trace) {
  std::set<std::int32_t> taken;
  std::vector<Recorder*> open;
  for (Recorder& recorder : trace.recorders) {
    if (recorder.has_replica) return trace;
    if (!recorder.rank)
      open.push_back(&recorder);
    else
      taken.insert(*recorder.rank);
  }
  const auto states_stage = [](const ObservedOp& observed) { return !observed.chunk; };
  if (open.empty() || taken.empty() ||
      std::all_of(trace.ops.begin(), trace.ops.end(), states_stage))
    return trace;
  std::int32_t free = 0;
  while (taken.contains(free)) ++free;
  if (open.size() == 1 && taken.size() + 1 == trace.recorders.size()) {
    open.front()->rank = free;
    return trace;
  }
  trace.remarks.doubts.emplace_back(
      "some traces state their rank and others do not: the others are taken as the last ranks");
  return trace;
}

bool all_ranks_open(const ObservedTrace& trace) {
  const auto is_open = [](const Recorder& recorder) { return !recorder.rank; };
  return std::all_of(trace.recorders.begin(), trace.recorders.end(), is_open) &&
         std::all_of(trace.ops.begin(), trace.ops.end(), [](const ObservedOp& observed) {
           return observed.chunk || !is_compute(observed.op.kind);
         });
}

/// When each recorder loads data.
class DataLoads {
 public:
  explicit DataLoads(const ObservedTrace& trace)
      : are_ahead_(trace.source.has_any_slices), starts_(trace.recorders.size()) {
    for (const ObservedActivity& activity : trace.activities)
      if (activity.name == kLoadingData)
        starts_[static_cast<std::size_t>(activity.recorder)].push_back(activity.start);
    for (std::vector<Nanos>& own : starts_) std::sort(own.begin(), own.end());
  }

  /// Whether an activity behind an op that has `ended` is of the step of the next one: it loads
  /// data, or follows loading it. Threads of other programs may load data ahead.
  bool begins_step(const ObservedActivity& activity, Nanos ended) const {
    if (activity.name == kLoadingData) return true;
    const std::vector<Nanos>& own = starts_[static_cast<std::size_t>(activity.recorder)];
    const auto load = std::lower_bound(own.begin(), own.end(), ended);
    return !are_ahead_ && load != own.end() && *load < activity.start;
  }

 private:
  bool are_ahead_;
  std::vector<std::vector<Nanos>> starts_;  ///< [recorder]
};

}  // namespace

ObservedTrace split_steps(ObservedTrace trace) {
  const auto lacks_step = [](const ObservedOp& observed) { return !observed.has_step; };
  if (std::none_of(trace.ops.begin(), trace.ops.end(), lacks_step)) return trace;
  if (!std::all_of(trace.ops.begin(), trace.ops.end(), lacks_step))
    throw Error(trace.recorders.front().where +
                ": the ops of some ranks are numbered and those of others are not; record all "
                "ranks alike");
  if (trace.recorders.size() < 2)
    throw Error(trace.recorders.front().where +
                ": its ops have no numbers, and it is the only rank: where a step ends shows only "
                "if all ranks are given");
  const std::vector<std::int32_t> ends = find_step_ends(trace, computes_by_recorder(trace));
  for (ObservedOp& observed : trace.ops) {
    const auto end = std::upper_bound(ends.begin(), ends.end(), observed.op.microbatch);
    observed.step = end - ends.begin();
  }
  return trace;
}

namespace {

ObservedTrace place_by_time(ObservedTrace trace) {
  if (std::all_of(trace.activities.begin(), trace.activities.end(),
                  [](const ObservedActivity& activity) { return activity.has_step; }))
    return trace;
  const std::vector<OpsInOrder> by_recorder = computes_by_recorder(trace);
  const StepExtents steps = find_step_extents(trace);
  const DataLoads loads(trace);
  for (ObservedActivity& activity : trace.activities) {
    const OpsInOrder& ops = by_recorder[static_cast<std::size_t>(activity.recorder)];
    if (activity.has_step || ops.empty()) continue;
    const auto next = std::upper_bound(
        ops.begin(), ops.end(), activity.start,
        [](Nanos start, const ObservedOp* observed) { return start < observed->start; });
    const Nanos ended = next == ops.begin() ? activity.start : (*std::prev(next))->end;
    const bool is_for_next = next != ops.end() && loads.begins_step(activity, ended);
    activity.step = (is_for_next || next == ops.begin() ? *next : *std::prev(next))->step;
  }
  if (trace.source.has_any_slices) trace = keep_usual_activities(std::move(trace));
  std::erase_if(trace.activities, [&](const ObservedActivity& activity) {
    const auto step = steps.find({activity.recorder, activity.step});
    return !activity.has_step && (step == steps.end() || (activity.start >= step->second.start &&
                                                          activity.end <= step->second.end));
  });
  return trace;
}

}  // namespace

ObservedTrace place_activities(ObservedTrace trace) {
  trace = place_by_time(std::move(trace));
  return trace.source.has_any_slices ? without_work_ahead(std::move(trace)) : std::move(trace);
}

RankedTrace rank_recorders(ObservedTrace trace) {
  if (trace.recorders.size() < 2) return {std::move(trace)};
  RankedTrace joined = join_pipelines(std::move(trace));
  if (joined.has_assigned) return {note_messages_beyond_ends(std::move(joined.trace)), true};
  trace = take_free_ranks(std::move(joined.trace));
  if (!all_ranks_open(trace)) return {std::move(trace)};
  const std::vector<OpsInOrder> by_recorder = computes_by_recorder(trace);
  const auto is_empty = [](const OpsInOrder& ops) { return ops.empty(); };
  if (std::any_of(by_recorder.begin(), by_recorder.end(), is_empty)) return {std::move(trace)};
  std::vector<std::int32_t> warmups;
  for (const OpsInOrder& ops : by_recorder) warmups.push_back(count_warmup(ops));
  std::vector<std::size_t> order(by_recorder.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const bool differ = std::set(warmups.begin(), warmups.end()).size() == warmups.size();
  if (differ) {
    std::sort(order.begin(), order.end(),
              [&](std::size_t left, std::size_t right) { return warmups[left] > warmups[right]; });
    std::sort(warmups.rbegin(), warmups.rend());
  } else if (!are_on_one_host(trace) || !sort_by_first_forward(by_recorder, order)) {
    trace.remarks.doubts.emplace_back(
        "nothing shows which rank of the pipeline each trace is of: they are taken in the order in "
        "which they were given");
    std::iota(order.begin(), order.end(), std::size_t{0});
  }
  OpsOfRanks ranks;
  for (const std::size_t recorder : order) {
    trace.recorders[recorder].rank = static_cast<std::int32_t>(ranks.size());
    ranks.push_back(by_recorder[recorder]);
  }
  if (std::optional<std::string> open = describe_open_chunks(ranks, {are_on_one_host(trace)})) {
    trace.remarks.faults.push_back(*std::move(open));
    return {std::move(trace), true, true};
  }
  if (differ) trace = note_missing_last_ranks(std::move(trace), warmups);
  return {note_messages_beyond_ends(std::move(trace)), true};
}

}  // namespace bubblescope::traces
