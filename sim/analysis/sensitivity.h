// Sensitivity: how much longer the step gets if one rank, or one kind of op, gets 1 % slower.
#pragma once

#include <span>

#include "sim/analysis/report.h"
#include "sim/model/traffic.h"

namespace bubblescope::inline sim {

/// Simulates the Program once per rank and kind, in a few batches. `traffic` may be null: then
/// messages share nothing.
Sensitivity find_sensitivity(const Program& program, std::span<const Nanos> durations,
                             const Traffic* traffic);

}  // namespace bubblescope::inline sim
