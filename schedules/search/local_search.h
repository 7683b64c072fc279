// Local search: moves ops along the critical path while that makes the longest span shorter.
#pragma once

#include <cstdint>

#include "schedules/search/asap_clock.h"

namespace bubblescope {

struct TimedOrder {
  TokenOrder order;
  Score score;
};

/// Late acceptance hill climbing with critical-path moves; the best order met, never worse than
/// `from`. Deterministic. Stops at `bound`, or after `evaluations` timed orders.
TimedOrder improve(const SearchProblem& problem, AsapClock& clock, const TimedOrder& from,
                   Nanos bound, std::int64_t evaluations);

}  // namespace bubblescope
