// What a hundredth more costs: of every rank, and of every kind of op.
#pragma once

#include <span>

#include "sim/analysis/report.h"
#include "sim/model/traffic.h"

namespace bubblescope {

/// Times the Program once for every rank and kind, all in a few batches. `traffic` may be null:
/// then messages share nothing.
Sensitivity find_sensitivity(const Program& program, std::span<const Nanos> durations,
                             const Traffic* traffic);

}  // namespace bubblescope
