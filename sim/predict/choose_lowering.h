// How a schedule is lowered: what is chosen, what the moves need, and how the step ends.
#pragma once

#include "sim/ir/lower.h"
#include "sim/ir/schedule.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// The options by which a schedule is lowered under this Config.
LowerOptions choose_lowering(const Schedule& schedule, const Config& config);

}  // namespace bubblescope::inline sim
