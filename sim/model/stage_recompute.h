// What a stage of a model makes again before its backward, as an op of its own.
#pragma once

#include "sim/model/model_step.h"

namespace bubblescope {

/// One micro-batch's recomputation on one stage.
struct StageRecompute {
  Nanos time = 0;    ///< of a slice
  Bytes spared = 0;  ///< of a slice: what its forward need not keep
};

/// Of the layers that the step puts on a stage; the embedding and the head are not made again.
StageRecompute stage_recompute(const ModelOnDevices& on, const ModelStep& step,
                               const Schedule& schedule, std::int32_t stage);

}  // namespace bubblescope
