// Tells the schedules that can be trained from the others.
#pragma once

#include "exec/training/serial_training.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

/// Throws Error if sequences have fewer tokens than slices, if heads do not divide the width, if
/// micro-batches do not fill the replicas, or if side stages are not shards.
void expect_trainable(const Schedule& schedule, const TrainingOptions& options);

}  // namespace bubblescope::exec
