// From a model on devices to what a schedule's ops cost and hold.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/model_step.h"
#include "tools/options.h"

namespace bubblescope {

/// A model as the flags spread it, and what its stages and ranks make of it.
struct PlacedModel {
  ModelOnDevices on;
  ModelStep step;
};

/// The model of the flags, with their recomputation and layout.
/// Throws Error with the nearest known name, or where a flag asks for what a model cannot have.
ModelOnDevices model_of(const PredictOptions& options);

/// The flags', and where there is a model its step's end.
LowerOptions lowering_of(const Schedule& schedule, const PredictOptions& options);

}  // namespace bubblescope
