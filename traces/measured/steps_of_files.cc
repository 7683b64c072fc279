// Compares the steps of all files.
#include "traces/measured/steps_of_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/measured/align_clocks.h"
#include "traces/measured/counted_steps.h"
#include "traces/measured/step_orders.h"

namespace bubblescope::traces {

namespace {

/// Whether the ops of several files state no step. Ranks of one host share a clock, and those of
/// Chrome traces may.
bool may_recount(const ObservedTrace& trace) {
  if (trace.recorders.empty()) return false;
  const std::string& first = trace.recorders.front().where;
  return std::any_of(trace.recorders.begin(), trace.recorders.end(),
                     [&](const Recorder& recorder) { return recorder.where != first; }) &&
         std::all_of(trace.ops.begin(), trace.ops.end(), [](const ObservedOp& observed) {
           return observed.step_is_counted || !is_compute(observed.op.kind);
         });
}

/// Programs that write Chrome json state no host, and their files mostly have one clock.
bool may_share_clock(const ObservedTrace& trace) {
  return trace.source.has_any_slices || are_on_one_host(trace);
}

/// The number of compute ops by step.
using OpsOfSteps = std::map<std::int64_t, std::size_t>;

/// Counts for each recorder the ops of its steps.
std::vector<OpsOfSteps> count_ops(const ObservedTrace& trace) {
  std::vector<OpsOfSteps> counts(trace.recorders.size());
  for (const ObservedOp& observed : trace.ops)
    if (is_compute(observed.op.kind))
      ++counts[static_cast<std::size_t>(observed.recorder)][observed.step];
  return counts;
}

/// Whether all steps of each rank have as many ops, and all ranks as many steps.
bool are_whole(const std::vector<OpsOfSteps>& counts) {
  std::size_t steps = 0;
  for (const OpsOfSteps& own : counts) {
    if (own.empty()) continue;
    if (steps > 0 && own.size() != steps) return false;
    steps = own.size();
    for (const auto& [_, ops] : own)
      if (ops != own.begin()->second) return false;
  }
  return true;
}

/// Whether the steps contradict the order of a pipeline.
bool contradict_pipeline(const ObservedTrace& trace) {
  std::map<std::int32_t, std::map<std::int32_t, LaneOps>> replicas;
  for (std::size_t at = 0; at < trace.ops.size(); ++at)
    if (is_compute(trace.ops[at].op.kind))
      replicas[trace.ops[at].replica][trace.ops[at].recorder].push_back(at);
  for (auto& [_, recorders] : replicas) {
    std::vector<LaneOps> lanes;
    std::vector<LaneSteps> steps;
    for (auto& [recorder, lane] : recorders) {
      std::stable_sort(lane.begin(), lane.end(), [&](std::size_t left, std::size_t right) {
        return trace.ops[left].start < trace.ops[right].start;
      });
      steps.emplace_back();
      for (const std::size_t at : lane) steps.back().push_back(trace.ops[at].step);
      lanes.push_back(std::move(lane));
    }
    if (contradict_order(trace.ops, lanes, steps)) return true;
  }
  return false;
}

/// Adds a reservation where ranks have different numbers of steps.
void doubt_numbers(ObservedTrace& trace, const std::vector<OpsOfSteps>& counts) {
  std::size_t fewest = counts.size();
  std::size_t most = counts.size();
  for (std::size_t at = 0; at < counts.size(); ++at) {
    if (counts[at].empty()) continue;
    if (fewest == counts.size() || counts[at].size() < counts[fewest].size()) fewest = at;
    if (most == counts.size() || counts[at].size() > counts[most].size()) most = at;
  }
  if (fewest == most || counts[fewest].size() == counts[most].size()) return;
  trace.remarks.doubts.insert(
      trace.remarks.doubts.begin(),
      fmt::format(
          "{} has {} and {} has {}, and nothing states which of them are the same: "
          "they count from the first of each; record the same steps on all ranks, or state those "
          "of all ops (args.step, or profiler.step() with `schedule=`)",
          trace.recorders[fewest].where, counted(std::ssize(counts[fewest]), "step"),
          trace.recorders[most].where, counts[most].size()));
}

/// Moves ranges of whole steps along with their ops. `before` are the former steps of the ops.
ObservedTrace with_moved_ranges(ObservedTrace trace, const std::vector<std::int64_t>& before) {
  std::map<std::pair<std::int32_t, std::int64_t>, std::int64_t> moved;  // by recorder and step
  for (std::size_t at = 0; at < before.size(); ++at)
    moved.emplace(std::pair(trace.ops[at].recorder, before[at]), trace.ops[at].step);
  for (ObservedActivity& activity : trace.activities) {
    if (!activity.is_whole_step) continue;
    const auto step = moved.find({activity.recorder, activity.step});
    if (step != moved.end()) activity.step = step->second;
  }
  return trace;
}

}  // namespace

ObservedTrace count_over_files(ObservedTrace trace) {
  if (!may_recount(trace)) return trace;
  const std::vector<OpsOfSteps> counts = count_ops(trace);
  if (are_whole(counts)) return trace;
  if (!may_share_clock(trace)) {
    doubt_numbers(trace, counts);
    return trace;
  }
  std::vector<std::int64_t> before;
  for (const ObservedOp& observed : trace.ops) before.push_back(observed.step);
  std::vector<std::size_t> all(trace.ops.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  trace.ops = with_counted_steps(std::move(trace.ops), all);
  if (!contradict_pipeline(trace)) return with_moved_ranges(std::move(trace), before);
  for (std::size_t at = 0; at < before.size(); ++at) trace.ops[at].step = before[at];
  doubt_numbers(trace, counts);
  return trace;
}

}  // namespace bubblescope::traces
