// Costs of a model that is cut into another number of stages.
//
// Nothing is known about the layers within a stage, so its work counts as spread evenly over it:
// four stages become eight by halving each, six by cutting at every 2/3. The total work stays the
// same to the nanosecond. With `heavier_ends`, the first and the last of three or more stages have
// layers of their own: two or more stages of half as many layers take half as long each, the first,
// the last and those between.
#pragma once

#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// The table with as many stages as the schedule has in one pipeline, in every replica. The same
/// table where it has this number already, or where its stages are not divisible. What cannot be
/// divided is left out: overlapped pairs and contention.
CostTable restage(const CostTable& table, const Schedule& schedule);

/// Whether restage() changes the table.
bool is_restaged(const CostTable& table, const Schedule& schedule);

/// Whether it gives the first and the last stage layers of their own.
bool restages_heavier_ends(const CostTable& table, const Schedule& schedule);

}  // namespace bubblescope::inline sim
