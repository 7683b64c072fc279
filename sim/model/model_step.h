// Costs and memory of a pipeline's stages, computed from a model on a cluster.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_model.h"
#include "sim/model/layer_cost.h"
#include "sim/model/memory_model.h"
#include "sim/model/rank_buffers.h"
#include "sim/model/stage_states.h"

namespace bubblescope::inline sim {

/// Everything that a schedule's prediction needs from a model.
struct ModelStep {
  CostModel costs;                            ///< including each stage's update and the norm
  std::vector<MemoryDelta> activation_bytes;  ///< [stage]
  std::vector<StateBytes> states;             ///< [rank]
  std::vector<std::int64_t> first_layer;      ///< [stage] of one pipeline, and the end
  /// [stage]: its 16-bit weights while they are gathered, where ModelOnDevices::counts_gathered;
  /// empty below ZeRO stage 3, where each rank has them all the time.
  std::vector<Bytes> gathered_bytes = {};
  bool splits_vocabulary = false;  ///< shards hold the embedding and the head
};

/// Layers are balanced (balance_layers.h), or as Parallelism::layers_of_stage or ends says. Devices
/// are numbered with tensor ranks innermost, then context, data and pipeline ranks (Megatron-LM's
/// order). Throws Error if there are too many stages or the layers cannot be split as requested.
ModelStep compute_model_step(const ModelOnDevices& on, const Schedule& schedule);

/// Returns the states of a rank, including its buffers, with one version of the weights.
StateBytes count_rank_states(const ModelOnDevices& on, const RankBuffers& buffers,
                             const RankLoad& load);

/// Returns one slice's part of a stage's activations.
MemoryDelta slice_memory(const MemoryDelta& whole, std::int32_t slices);

/// A placeholder for a schedule that has no order yet: stages are assigned to ranks in a loop, and
/// so are the side stages after them.
Schedule make_unordered_schedule(const Shape& shape, std::int32_t side_stages = 0);

/// Computes the step of schedules that read costs before they have an order.
ModelStep compute_model_step(const ModelOnDevices& on, const Shape& shape);

/// A lower bound on the memory of the fullest rank, wherever a schedule puts the stages: the mean
/// states per rank and one micro-batch. If this exceeds a device's memory, no simulation is needed.
/// Throws Error as compute_model_step() does.
Bytes min_bytes(const ModelOnDevices& on, const Schedule& schedule);

/// "llama3-70b on h100, tp 4, ...": how a report names the source of its costs.
std::string describe_model(const ModelOnDevices& on);

/// Returns one line per assumption.
std::vector<std::string> explain(const ModelOnDevices& on);

}  // namespace bubblescope::inline sim
