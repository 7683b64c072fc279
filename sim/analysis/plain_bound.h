// The lower bound of a plain step (plain_step.h).
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"

namespace bubblescope::inline sim {

/// lower_bound() of a plain step in which every micro-batch of a stage has an F and such a
/// backward, B or I and W: it follows from the chains of one micro-batch and their number.
Nanos bound_plain_step(const Schedule& schedule, const CostModel& costs, OpKind backward);

}  // namespace bubblescope::inline sim
