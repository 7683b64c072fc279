// Costs and memory of a schedule's ops from a model on devices.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/model_step.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// A model as the flags distribute it, and the stages and ranks that result.
struct PlacedModel {
  ModelOnDevices on;
  ModelStep step;
};

/// Returns the model of the flags, with their recomputation and layout. Throws Error with the
/// nearest known name, or where a flag does not apply to the model.
ModelOnDevices resolve_model(const PredictOptions& options);

/// Returns the lowering of the flags, and with a model that of its step's end.
LowerOptions choose_lowering(const Schedule& schedule, const PredictOptions& options);

}  // namespace bubblescope::tools
