// A model on a cluster, as the costs and the memory of a pipeline's stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/layer_cost.h"
#include "sim/model/memory_model.h"

namespace bubblescope {

/// What the states of a rank weigh, by what they are made of.
struct StateBytes {
  Bytes weights = 0;
  Bytes gradients = 0;
  Bytes optimizer = 0;
  Bytes buffers = 0;  ///< messages on their way, a layer that is computed again, gathered weights
  Bytes context = 0;  ///< the driver's and the libraries', and what the allocator cannot use

  Bytes total() const { return weights + gradients + optimizer + buffers + context; }
};

/// Everything that a schedule's prediction needs of a model.
struct ModelStep {
  CostModel costs;
  std::vector<MemoryDelta> activation_bytes;  ///< [stage]
  std::vector<StateBytes> states;             ///< [rank]
  std::vector<std::int64_t> first_layer;      ///< [stage], of one pipeline, and the end
  Nanos gradient_sync = 0;                    ///< after the last backward, what is not overlapped
  Nanos optimizer = 0;                        ///< the update, and gathering the new weights

  Nanos tail() const { return gradient_sync + optimizer; }
};

/// Layers are split so that no stage has more work than need be. Devices are numbered with tensor
/// ranks next to each other, then context, data and pipeline ranks (Megatron-LM's order).
/// Throws Error where the model has fewer layers than stages, or cannot be cut as asked.
ModelStep model_step(const ModelOnDevices& on, const Schedule& schedule);

/// The same without an order: for schedules that read costs before they have one.
ModelStep model_step(const ModelOnDevices& on, const Shape& shape);

/// The least that a rank must hold whatever the schedule: states of the fullest rank, and one
/// micro-batch. What exceeds a device's memory by this alone needs no simulation.
Bytes least_bytes(const ModelStep& step);

/// One line per assumption that went into it.
std::vector<std::string> explain(const ModelOnDevices& on);

}  // namespace bubblescope
