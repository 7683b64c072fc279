// Recomputation of a model's stage as an op of its own.
#pragma once

#include "sim/model/model_step.h"

namespace bubblescope::inline sim {

/// One micro-batch's recomputation on one stage.
struct StageRecompute {
  Nanos time = 0;         ///< per slice
  Bytes freed_bytes = 0;  ///< per slice: bytes that its forward need not save
};

/// Covers the layers that the step assigns to a stage; embedding and head are not recomputed.
StageRecompute estimate_stage_recompute(const ModelOnDevices& on, const ModelStep& step,
                                        const Schedule& schedule, std::int32_t stage);

}  // namespace bubblescope::inline sim
