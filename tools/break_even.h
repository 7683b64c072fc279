// Where another schedule would be best.
#pragma once

#include <vector>

#include "tools/what_if.h"
#include "traces/plan_table.h"

namespace bubblescope {

struct BreakEvens {
  std::vector<BreakEven> found;
  std::vector<std::string> stays_best;  ///< flags that were varied without a change of the best
};

/// Varies --p2p, --i and --w, one at a time, up and down from what they are, between 0 and eight
/// times a micro-batch's work, and finds the nearest value to the nanosecond at which another
/// schedule, in its best configuration there, is ahead of the first plan's schedule in its best.
/// Nothing where that takes more simulations than are worth it. Schedules that look for an order
/// are left out, as another cost is another order; so is everything where costs come from a file.
BreakEvens find_break_evens(const WhatIf& what_if, const std::vector<Plan>& ranked);

}  // namespace bubblescope
