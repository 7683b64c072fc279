// Says for each cost how far the best plan's schedule remains the best:
//   zb-h1 is best
//     while `p2p` < 218.75 us    then zb-v (now 0 ms)
#pragma once

#include <string>

#include "traces/plans/plan_table.h"

namespace bubblescope::traces {

/// One line per break-even value, to five digits; empty where none was looked for.
std::string write_break_evens(const PlanTable& table);

}  // namespace bubblescope::traces
