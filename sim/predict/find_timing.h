// The timing of a step: what every instruction takes and how long it waits, from a Config.
#pragma once

#include "sim/ir/program.h"
#include "sim/model/timing.h"
#include "sim/predict/config.h"
#include "sim/predict/models.h"

namespace bubblescope::inline sim {

/// Prices a Program by these models: durations, gaps between ops, and how instructions slow each
/// other. They are put together here, so that no caller forgets one of them.
Timing find_timing(const Program& program, const Models& models);

/// Prices a Program by these models and adds all that the Config says about time: injected delays,
/// arrivals, slow ranks.
Timing find_timing(const Program& program, const Models& models, const Config& config);

}  // namespace bubblescope::inline sim
