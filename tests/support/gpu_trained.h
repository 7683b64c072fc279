// Training on the fake device, and its proof.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/job.h"
#include "exec/runtime/execute.h"
#include "exec/training/proof.h"
#include "sim/ir/lower.h"

namespace bubblescope {

struct Trained {
  Execution execution;
  std::optional<Proof> proof;  ///< empty where the execution broke down
  std::vector<Bytes> peaks;
};

/// Three steps, of which one warms up. Throws Error for what cannot be trained.
Trained train_on_gpu(const Schedule& schedule, const TrainingOptions& options,
                     const DeviceOptions& device = {}, const LowerOptions& lowering = {});

/// Trains, and expects the serial reference's results. Returns the last step.
Timeline expect_trained(const Schedule& schedule, const TrainingOptions& options,
                        const DeviceOptions& device = {}, const LowerOptions& lowering = {});

/// One update per stage or version, in the Program, behind nothing but its gradients.
LowerOptions with_local_optimizer();

}  // namespace bubblescope
