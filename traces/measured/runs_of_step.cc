// Counts the micro-batches in flight on every rank.
#include "traces/measured/runs_of_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/counted.h"
#include "traces/measured/profile_outer_activities.h"

namespace bubblescope::traces {

namespace {

/// A rank's forwards until then, and how many of them wait for their backward.
struct Flight {
  std::int32_t forwards = 0;
  std::int32_t in_flight = 0;
  std::int32_t most = 0;
  std::set<std::int32_t> empty_after = {};  ///< numbers of forwards after which none waits
};

std::vector<Flight> count_flights(const MeasuredStep& step) {
  std::vector<Flight> flights(static_cast<std::size_t>(step.program.ranks));
  for (const Instruction& one : step.program.instructions) {
    if (!is_compute(one.op.kind)) continue;
    Flight& flight = flights[static_cast<std::size_t>(one.rank)];
    if (one.op.kind == OpKind::kForward) {
      ++flight.forwards;
      flight.most = std::max(flight.most, ++flight.in_flight);
    } else if (gives_input_grad(one.op.kind) && --flight.in_flight == 0) {
      flight.empty_after.insert(flight.forwards);
    }
  }
  return flights;
}

}  // namespace

std::optional<std::int32_t> count_runs_of_step(const MeasuredStep& step) {
  const std::vector<Flight> flights = count_flights(step);
  if (flights.size() < 2 || !step.missing_ranks.empty()) return {};
  std::set<std::int32_t> ends = flights.front().empty_after;
  std::int32_t most = 0;
  for (const Flight& flight : flights) {
    if (flight.forwards != flights.front().forwards) return {};
    std::set<std::int32_t> common;
    std::set_intersection(ends.begin(), ends.end(), flight.empty_after.begin(),
                          flight.empty_after.end(), std::inserter(common, common.end()));
    ends = std::move(common);
    most = std::max(most, flight.most);
  }
  const auto runs = static_cast<std::int32_t>(ends.size());
  if (runs < 2 || most < 2) return {};
  std::int32_t expected = 0;
  for (const std::int32_t end : ends) {
    expected += flights.front().forwards / runs;
    if (end != expected) return {};
  }
  return runs;
}

std::optional<std::string> describe_runs_of_step(const MeasuredStep& step) {
  const std::optional<std::int32_t> runs = count_runs_of_step(step);
  if (!runs) return {};
  return fmt::format(
      "each step has {} runs of the pipeline of {} micro-batches, one after another, as where "
      "gradients are accumulated: bubble and makespan are of all of them together",
      *runs, step.schedule->shape.microbatches / *runs);
}

std::optional<std::string> describe_runs_without_optimizer(
    const std::map<StepKey, StepOps>& steps, const std::vector<ObservedActivity>& activities,
    const std::vector<std::int32_t>& rank_of_recorder) {
  std::set<StepKey> with_optimizer;
  for (const ObservedActivity& activity : activities) {
    if (activity.is_whole_step) return {};
    const auto step = steps.find({activity.replica, activity.step});
    if (activity.name != kOptimizer || step == steps.end()) continue;
    const std::int32_t rank = rank_of_recorder[static_cast<std::size_t>(activity.recorder)];
    const std::vector<ObservedOp>& ops = step->second.computes;
    if (std::any_of(ops.begin(), ops.end(), [&](const ObservedOp& observed) {
          return observed.recorder == rank && observed.start < activity.start;
        }))
      with_optimizer.insert(step->first);
  }
  if (with_optimizer.empty()) return {};
  std::int64_t lacking = 0;
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    const auto next = std::next(step);
    // A recording may end before the optimizer runs.
    const bool is_last = next == steps.end() || next->first.first != step->first.first;
    if (!is_last && !with_optimizer.contains(step->first)) ++lacking;
  }
  if (lacking == 0) return {};
  return fmt::format(
      "the optimizer did not run behind {} of {}: a step of the training has several, as where "
      "gradients are accumulated, and is longer than the runs that count as steps here, because no "
      "step is marked (ProfilerStep#N); call profiler.step() after each step",
      lacking, counted(std::ssize(steps), "run"));
}

}  // namespace bubblescope::traces
