// Sensitivity: how much longer the step gets if one rank, or one kind of op, gets 1 % slower.
#pragma once

#include "sim/analysis/pair_times.h"
#include "sim/analysis/report.h"
#include "sim/model/timing.h"

namespace bubblescope::inline sim {

/// Simulates the Program once per rank and kind, in a few batches. Of the ops of interleaved pairs,
/// if there are any, what counts to a kind gets slower; the order of their parts stays.
Sensitivity find_sensitivity(const Program& program, const Timing& timing,
                             const PairTimes* pairs = nullptr);

}  // namespace bubblescope::inline sim
