// How a schedule is lowered: what is chosen, what the moves need, and how the step ends.
#pragma once

#include "sim/ir/lower.h"
#include "sim/ir/schedule.h"
#include "sim/predict/config.h"
#include "sim/predict/step_end.h"

namespace bubblescope::inline sim {

/// The options by which a schedule is lowered under this Config.
LowerOptions choose_lowering(const Schedule& schedule, const Config& config);

/// The same for parts of a Config. `model_end` is null without a model.
LowerOptions choose_lowering(const Schedule& schedule, LowerOptions lower, const Moves& moves,
                             const StepConditions& conditions, const StepEnd* model_end);

}  // namespace bubblescope::inline sim
