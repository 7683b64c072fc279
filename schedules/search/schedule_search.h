// The search for a schedule: heuristics for a good one, an exact search for the best one, and a
// bound on what any could reach.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "schedules/search/placements.h"
#include "schedules/search/search_effort.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {

/// What is to be short.
enum class Objective : std::uint8_t {
  kMakespan,  ///< the step
  kSpan,      ///< the longest of the ranks' own times, last end minus first start
  kPeriod,    ///< the time per micro-batch while the pipeline runs evenly
};

/// How a search stands.
struct SearchNews {
  Nanos value = 0;  ///< of the best schedule so far
  Nanos bound = 0;  ///< no schedule can be better
};

/// The room that devices have for activations.
struct ByteLimits {
  std::vector<MemoryDelta> activations;  ///< [stage]: bytes per micro-batch
  std::vector<Bytes> room;               ///< [rank]: bytes for activations
};

/// What is looked for, and how long.
struct SearchGoal {
  PlacementChoice placement = PlacementChoice::kLinear;
  Objective objective = Objective::kMakespan;
  std::int64_t effort = 100'000'000;  ///< timed ops; the result depends on it and on nothing slower
  std::uint64_t seed = 1;
  /// Where devices are known, what they have room for when stages lie so; it is a cap besides those
  /// of the request.
  std::function<ByteLimits(const std::vector<std::int32_t>& rank_of_stage)> byte_limits = {};
  StopRequest stop = {};                             ///< ends the search with the best so far
  std::function<void(const SearchNews&)> tell = {};  ///< called at every improvement
};

struct FoundSchedule {
  Schedule schedule;
  Nanos value = 0;  ///< what the objective says of it
  Nanos bound = 0;  ///< what it says of every schedule that was allowed, at least

  bool is_optimal() const { return value == bound; }
  /// How much of the value might be saved at most.
  double gap() const {
    return value == 0 ? 0 : static_cast<double>(value - bound) / static_cast<double>(value);
  }
};

/// Why there can be no such schedule, each reason with its remedy; empty: there is one.
std::vector<std::string> refuse_goal(const ScheduleRequest& request, const SearchGoal& goal);

/// The best schedule found for the request's shape, costs, memory and caps (of the request, the
/// shape's chunks must be set). Micro-batches stay in order on every stage, which costs nothing as
/// they are alike. Backwards are split; where a full backward is shorter than its halves, schedules
/// with full backwards and mixes are tried too. What is found under a smaller cap (CapLadder)
/// counts under a larger one. Only for requests that are not refused.
FoundSchedule search_schedule(const ScheduleRequest& request, const SearchGoal& goal);

}  // namespace bubblescope
