// Training data of a step: uploads tokens, downloads losses.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_stage.h"
#include "exec/training/training.h"

namespace bubblescope::exec {

class GpuData {
 public:
  /// Allocates memory on every device. Nothing is copied. Throws Error if a device is out of
  /// memory.
  GpuData(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options);

  /// Uploads the tokens of a step; call only while nothing runs. Each replica of the pipeline has
  /// its own micro-batches.
  void upload(std::int32_t step, std::int32_t replica) const;

  /// Returns the tokens of an op, on the device of its rank.
  GpuTokens tokens_of(const Op& op) const;

  /// The sum over all micro-batches whose loss is computed in this process; call only while nothing
  /// runs.
  double sum_losses() const;

 private:
  Positions positions_of(std::int32_t slice) const;

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const TrainingOptions& options_;
  std::vector<GpuHandle> tokens_;  ///< [device]: inputs, then targets, slice by slice
  std::vector<GpuHandle> losses_;  ///< [device]: one per slice
};

}  // namespace bubblescope::exec
