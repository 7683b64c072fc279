// Predicts the memory that a training takes on devices.
#pragma once

#include <vector>

#include "exec/gpu/host/device_options.h"
#include "exec/training/serial_training.h"
#include "sim/ir/program.h"
#include "sim/ir/timeline.h"
#include "sim/ir/units.h"
#include "sim/ir/valid_schedule.h"
#include "sim/model/memory_model.h"

namespace bubblescope::exec {

/// The bytes that each op of a training adds to its rank's memory on a device, per stage.
MemoryModel device_training_memory(const Schedule& schedule, const TrainingOptions& options,
                                   const DeviceOptions& device);

/// A step that was run or predicted.
struct TimedProgram {
  const ValidSchedule& schedule;
  const Program& program;
  const Timeline& timeline;
};

/// Predicts PoolUse::peak of every rank in such a step.
std::vector<Bytes> predict_pool_bytes(const TimedProgram& step, const TrainingOptions& options,
                                      const DeviceOptions& device);

}  // namespace bubblescope::exec
