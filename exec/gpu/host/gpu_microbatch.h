// What a device holds for a micro-batch, or for a slice of one, on a stage.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope {

struct GpuMicrobatch {
  std::optional<GpuActivations> saved;
  GpuMatrix input;  ///< where everything is made again from it
  std::optional<GpuWeightWork> work;
  Recompute recompute = Recompute::kNone;
  bool complete = false;  ///< nothing of what is saved must be made again
  bool is_here = false;   ///< not evicted
  Bytes held = 0;

  /// What waits for the backward, in a fixed order.
  std::vector<GpuMatrix*> kept() {
    if (saved) return saved->matrices();
    if (input.rows == 0) return {};
    return {&input};
  }
};

}  // namespace bubblescope
