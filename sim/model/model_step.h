// A model on a cluster, as the costs and the memory of a pipeline's stages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/layer_cost.h"
#include "sim/model/memory_model.h"
#include "sim/model/stage_states.h"

namespace bubblescope {

/// Everything that a schedule's prediction needs of a model.
struct ModelStep {
  CostModel costs;                            ///< with each stage's update and the norm
  std::vector<MemoryDelta> activation_bytes;  ///< [stage]
  std::vector<StateBytes> states;             ///< [rank]
  std::vector<std::int64_t> first_layer;      ///< [stage], of one pipeline, and the end
};

/// Layers are split so that no stage has more work than need be. Devices are numbered with tensor
/// ranks next to each other, then context, data and pipeline ranks (Megatron-LM's order).
/// Throws Error where the model is cut into too many stages, or cannot be cut as asked.
ModelStep model_step(const ModelOnDevices& on, const Schedule& schedule);

/// What all stages of a rank hold.
struct RankLoad {
  std::int64_t layers = 0;
  StageParameters parameters;
};

/// A rank's states in a pipeline of so many ranks, its buffers included; one version of the
/// weights.
StateBytes states_of_rank(const ModelOnDevices& on, std::int32_t ranks, const RankLoad& load);

/// The part of a stage's activations that one slice of a sequence has.
MemoryDelta slice_memory(const MemoryDelta& whole, std::int32_t slices);

/// Stands for a schedule that has no order yet: stages dealt to ranks in a loop.
Schedule unordered_schedule(const Shape& shape);

/// The same without an order: for schedules that read costs before they have one.
ModelStep model_step(const ModelOnDevices& on, const Shape& shape);

/// What the fullest rank must hold at least, wherever a schedule puts the stages: its states, which
/// are no less than the mean over ranks, and one micro-batch. What exceeds a device's memory by
/// this alone needs no simulation.
Bytes least_bytes(const ModelStep& step);

/// "llama3-70b on h100, tp 4, ...": what a report says of its costs.
std::string in_words(const ModelOnDevices& on);

/// One line per assumption that went into it.
std::vector<std::string> explain(const ModelOnDevices& on);

}  // namespace bubblescope
