// Arrivals: micro-batches that are not there when a step starts, such as requests to a server or
// rollouts of reinforcement learning.
//
// Each late micro-batch becomes an instruction that occupies no rank and ends at its arrival. The
// micro-batch's forwards on the first stage wait for it.
#pragma once

#include <span>
#include <vector>

#include "sim/ir/program.h"
#include "sim/ir/schedule.h"
#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// Adds the arrivals to a Program. `arrivals` has one time per micro-batch; those at 0 add nothing.
/// Throws Error where there is not one for each.
Program add_arrivals(Program program, const Schedule& schedule, std::span<const Nanos> arrivals);

/// Sets the durations of the arrivals: each lasts from the step's start.
std::vector<Nanos> price_arrivals(const Program& program, std::vector<Nanos> durations,
                                  std::span<const Nanos> arrivals);

}  // namespace bubblescope::inline sim
