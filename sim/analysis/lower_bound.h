// A lower bound on the step time: no order of these ops on these ranks can be faster.
#pragma once

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// For every rank and every set of its ops: the earliest start of any of them, plus their total
/// work and the gaps between them, plus the shortest time from the end of any of them to the end of
/// the step. The bound is the largest of these values and of all dependency chains. Ops of the same
/// stage and kind are grouped. Messages take their time without contention. Overlapped pairs do not
/// constrain the other orders.
Nanos lower_bound(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::inline sim
