// The rule of the machine played by the clock, as a judge of the dataflow pass.
#pragma once

#include <vector>

#include "sim/ir/timeline.h"

namespace bubblescope {

/// A clock, a heap of ends, and at every end a look at which instructions can start now. It knows
/// nothing of topological orders. Quadratic in the instructions.
Timeline run_by_the_clock(const Program& program, const std::vector<Nanos>& durations);

}  // namespace bubblescope
