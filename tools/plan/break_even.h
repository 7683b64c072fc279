// Break-even points: values of cost flags from which another schedule is the best.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/plan/what_if.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

struct BreakEvens {
  /// The best schedule with a fixed order, which is compared with the others; nullopt: none is.
  std::optional<std::string> best;
  std::vector<traces::BreakEven> found;
  std::vector<std::string> unaffected;  ///< flags whose variation does not change the best
  std::vector<std::string> left_out;    ///< schedules that were not compared
};

/// Varies --p2p, --i and --w, one at a time, in both directions, between 0 and eight times a
/// micro-batch's work. Finds the nearest value, to the nanosecond, at which another schedule, in
/// its best configuration there, is ahead of the best plan's schedule in its best. Where chunks,
/// slices or ranks share a cost, schedules within a millionth of the step are tied. Finds nothing
/// where that needs too many simulations. Schedules that search for an order are left out, because
/// other costs give another order, and are named if there is anything else to compare; so is
/// everything where costs come from a file.
BreakEvens find_break_evens(const WhatIf& what_if, const std::vector<Plan>& plans);

}  // namespace bubblescope::tools
