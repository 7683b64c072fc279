// Trains on the simulated device and verifies the result.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/job.h"
#include "exec/runtime/execute.h"
#include "exec/training/verification.h"
#include "sim/ir/lower.h"

namespace bubblescope::tests {

struct Trained {
  exec::Execution execution;
  std::optional<exec::Verification> verification;  ///< empty if the execution broke down
  std::vector<Bytes> peaks;
};

/// Trains three steps, one of them warm-up. Throws Error for what cannot be trained.
Trained train_on_gpu(const Schedule& schedule, const exec::TrainingOptions& options,
                     const exec::DeviceOptions& device = {}, const LowerOptions& lowering = {});

/// Trains and expects the results of the serial reference. Returns the last step.
Timeline expect_trained(const Schedule& schedule, const exec::TrainingOptions& options,
                        const exec::DeviceOptions& device = {}, const LowerOptions& lowering = {});

/// Options with one update per stage or version in the Program, which waits only for its gradients.
LowerOptions with_local_optimizer();

}  // namespace bubblescope::tests
