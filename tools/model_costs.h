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

/// The model's step, with as many versions of the weights on each rank as the schedule holds.
ModelStep step_of(const ModelOnDevices& on, const Schedule& schedule);

/// The activations and states of a model, in bytes.
void set_bytes(MemoryModel& memory, const ModelStep& step);

/// Gives a model's R's, where the schedule has them, the time and the bytes of their stages.
void set_recompute(CostModel& costs, MemoryModel& memory, const Schedule& schedule,
                   const PlacedModel& placed);

/// Gives a model's copies, where the schedule has them, the time that what a forward keeps takes to
/// the host's memory, or to the rank that keeps it.
void set_copies(CostModel& costs, const MemoryModel& memory, const Schedule& schedule,
                const ModelOnDevices& on);

/// The flags', and where there is a model its step's end.
LowerOptions lowering_of(const Schedule& schedule, const PredictOptions& options);

}  // namespace bubblescope
