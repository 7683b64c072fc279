// Says which configurations are not among the plans, and why:
//   left out:
//     zb-h2           2 configurations, closest pp 8 m 16: rank 0 holds 15 at its peak, over `cap`
//     2 schedules     8 configurations: `ep` 3 does not divide the model's experts (gpipe, 1f1b)
#pragma once

#include <cstddef>
#include <string>

#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

/// One line per schedule, or per reason where several schedules have the same, in the order of the
/// first of them. `name_width` is that of the names. Empty where nothing was left out.
std::string write_refusals(const PlanTable& table, std::size_t name_width);

}  // namespace bubblescope::traces
