// Local search: moves ops along the critical path while that shortens the longest span.
#pragma once

#include <cstdint>

#include "schedules/search/asap_clock.h"
#include "schedules/search/search_effort.h"

namespace bubblescope::schedules {

struct TimedOrder {
  TokenOrder order;
  Score score;
};

/// The limits of a local search.
struct SearchLimits {
  Nanos bound = 0;               ///< the search ends at a span this short
  std::int64_t evaluations = 0;  ///< or after this many timed orders
  std::uint64_t seed = 1;
  StopRequest stop = {};
};

/// Late acceptance hill climbing with critical-path moves. Returns the best order found, never
/// worse than `from`. Deterministic for a seed, unless it is stopped.
TimedOrder improve(const SearchProblem& problem, AsapClock& clock, const TimedOrder& from,
                   const SearchLimits& climb);

}  // namespace bubblescope::schedules
