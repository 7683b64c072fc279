// Noise: how long a step takes in many scenarios of random durations.
#pragma once

#include <cstddef>

#include "sim/analysis/report.h"
#include "sim/model/noise.h"
#include "sim/model/timing.h"

namespace bubblescope::inline sim {

/// Simulates the same step in `scenarios` scenarios. Longer sequences also lengthen the part of
/// messages and copies that `costs` says is due to their bytes. Throws Error if a step could get
/// too long.
StepTimes simulate_noise(const Program& program, const Timing& timing, const CostModel& costs,
                         const Noise& noise, std::size_t scenarios);

}  // namespace bubblescope::inline sim
