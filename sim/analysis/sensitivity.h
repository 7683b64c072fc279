// Sensitivity: how much longer the step gets if one rank, or one kind of op, gets 1 % slower.
#pragma once

#include "sim/analysis/report.h"
#include "sim/model/timing.h"

namespace bubblescope::inline sim {

/// Simulates the Program once per rank and kind, in a few batches.
Sensitivity find_sensitivity(const Program& program, const Timing& timing);

}  // namespace bubblescope::inline sim
