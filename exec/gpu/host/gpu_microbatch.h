// The memory that a stage holds on a device for one micro-batch or slice.
#pragma once

#include <optional>
#include <vector>

#include "exec/gpu/host/gpu_stage.h"
#include "sim/ir/schedule.h"

namespace bubblescope::exec {

struct GpuMicrobatch {
  std::optional<GpuActivations> saved;
  GpuMatrix input;  ///< if everything is recomputed from it
  std::optional<GpuWeightWork> work;
  Recompute recompute = Recompute::kNone;
  bool complete = false;  ///< nothing that was saved needs recomputing
  bool is_here = false;   ///< false while evicted
  Bytes held = 0;

  /// Returns the matrices that are kept for the backward, in a fixed order.
  std::vector<GpuMatrix*> kept() {
    if (saved) return saved->matrices();
    if (input.rows == 0) return {};
    return {&input};
  }
};

}  // namespace bubblescope::exec
