// An independent simulator of the rule of the machine, to compare the dataflow pass with.
#pragma once

#include <vector>

#include "sim/ir/timeline.h"

namespace bubblescope::tests {

/// Uses a clock and a heap of ends, and at every end looks for instructions that can start. It does
/// not need a topological order. Quadratic in the instructions.
Timeline run_by_the_clock(const Program& program, const std::vector<Nanos>& durations);

}  // namespace bubblescope::tests
