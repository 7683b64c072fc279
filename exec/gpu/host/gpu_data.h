// What a step trains on and what comes of it: tokens up, losses down.
#pragma once

#include <vector>

#include "exec/gpu/host/gpu_machine.h"
#include "exec/gpu/host/gpu_stage.h"
#include "exec/training/training.h"

namespace bubblescope {

class GpuData {
 public:
  /// Room on every device. Nothing is copied. Throws Error where a device is full.
  GpuData(const GpuMachine& machine, const Schedule& schedule, const TrainingOptions& options);

  /// While nothing runs: the tokens of a step. Of several copies of the pipeline, each has
  /// micro-batches of its own.
  void upload(std::int32_t step, std::int32_t copy) const;

  /// On the device of the rank that runs the op.
  GpuTokens of(const Op& op) const;

  /// While nothing runs: of all micro-batches whose loss is made in this process.
  double sum_losses() const;

 private:
  Positions positions_of(std::int32_t slice) const;

  const GpuMachine& machine_;
  const Schedule& schedule_;
  const TrainingOptions& options_;
  std::vector<GpuHandle> tokens_;  ///< [device]: inputs, then targets, slice by slice
  std::vector<GpuHandle> losses_;  ///< [device]: one per slice
};

}  // namespace bubblescope
