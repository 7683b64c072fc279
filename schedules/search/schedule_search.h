// The search for a schedule: heuristics for a good one, an exact search for the best one, and a
// bound on all.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/search/placements.h"
#include "schedules/search/search_effort.h"
#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// The quantity that the search minimizes.
enum class Objective : std::uint8_t {
  kMakespan,  ///< the step time
  kSpan,      ///< the longest of the ranks' own times, last end minus first start
  kPeriod,    ///< the time per micro-batch in the steady state
};

/// The progress of a search.
struct SearchProgress {
  Nanos value = 0;  ///< of the best schedule so far
  Nanos bound = 0;  ///< no schedule can be better
};

/// The objective, the constraints and the effort of a search.
struct SearchGoal {
  PlacementChoice placement = PlacementChoice::kLinear;
  Objective objective = Objective::kMakespan;
  std::int64_t effort = 100'000'000;  ///< timed ops; independent of the machine's speed
  std::uint64_t seed = 1;
  /// If costs depend on the placement: what replaces the request's there.
  std::function<std::optional<CostModel>(const std::vector<std::int32_t>& rank_of_stage)>
      find_costs = {};
  /// If memory is in bytes: what replaces the request's memory on a placement, with its caps.
  std::function<MemoryModel(const std::vector<std::int32_t>& rank_of_stage)> find_memory = {};
  StopRequest stop = {};  ///< ends the search with the best schedule so far
  std::function<void(const SearchProgress&)> on_progress = {};  ///< called at every improvement
};

struct FoundSchedule {
  Schedule schedule;
  Nanos value = 0;  ///< the objective's value of `schedule`
  Nanos bound = 0;  ///< a lower bound on the value of every allowed schedule

  bool is_optimal() const { return value == bound; }
  /// How far the value is above the bound, as a fraction of the bound.
  double gap() const {
    return bound == 0 ? 0 : static_cast<double>(value - bound) / static_cast<double>(bound);
  }
};

/// Why no such schedule can exist, each reason with its remedy; empty: one exists.
std::vector<std::string> refuse_goal(const ScheduleRequest& request, const SearchGoal& goal);

/// The best schedule found for the request's shape, costs, memory and caps. The request must set
/// the shape's chunks and must not be refused. Micro-batches stay in order on every stage, which
/// costs nothing because they are identical. Backwards are split; if a full backward is shorter
/// than its halves, full backwards and mixes are tried too. Orders found under a smaller cap
/// (CapLadder) count under a larger one.
FoundSchedule search_schedule(const ScheduleRequest& request, const SearchGoal& goal);

}  // namespace bubblescope::schedules
