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

std::optional<std::string> describe_runs_of_step(const MeasuredStep& step) {
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
  return fmt::format(
      "each step has {} runs of the pipeline of {} micro-batches, one after another, as where "
      "gradients are accumulated: bubble and makespan are of all of them together",
      runs, step.schedule->shape.microbatches / runs);
}

}  // namespace bubblescope::traces
