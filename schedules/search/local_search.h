// Local search: moves ops along the critical path while that makes the longest span shorter.
#pragma once

#include <cstdint>

#include "schedules/search/asap_clock.h"
#include "schedules/search/search_effort.h"

namespace bubblescope {

struct TimedOrder {
  TokenOrder order;
  Score score;
};

/// How far to climb.
struct Climb {
  Nanos bound = 0;               ///< the search ends when a span is this short
  std::int64_t evaluations = 0;  ///< or after this many timed orders
  std::uint64_t seed = 1;
  StopRequest stop = {};
};

/// Late acceptance hill climbing with critical-path moves; the best order met, never worse than
/// `from`. The same seed finds the same, unless it is told to stop.
TimedOrder improve(const SearchProblem& problem, AsapClock& clock, const TimedOrder& from,
                   const Climb& climb);

}  // namespace bubblescope
