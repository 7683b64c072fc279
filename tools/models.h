// What a schedule's ops cost and hold, from each of the sources.
#pragma once

#include <optional>

#include "sim/model/cluster.h"
#include "sim/model/contention.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "tools/model_costs.h"
#include "tools/network_options.h"
#include "traces/cost_file.h"

namespace bubblescope {

/// What a schedule's ops cost and hold.
struct Models {
  CostModel costs;
  MemoryModel memory;
  std::optional<Cluster> cluster;        ///< where messages share links
  std::optional<Contention> contention;  ///< where ops slow each other
  std::optional<PlacedModel> placed;     ///< where a model gives them
};

/// Whether any rank runs such an op.
bool has_kind(const Schedule& schedule, OpKind kind);

/// `memory` with the activations and states of a model, in bytes.
MemoryModel with_bytes(MemoryModel memory, const ModelStep& step);

/// A model's, with as many versions of its weights as the schedule holds, its recomputation and its
/// copies; `memory` is what the flags say of it. Throws Error for what a model cannot have.
Models placed_models(ModelOnDevices on, const Schedule& schedule, MemoryModel memory);

/// All that a cost file says; `memory` is what the flags say of it.
Models file_models(const CostFile& file, const Schedule& schedule, MemoryModel memory);

/// Costs of flags, spread over the schedule's stages, and the network of flags. No memory.
Models flag_models(const UniformCost& cost, const std::optional<NetworkOptions>& network,
                   const Schedule& schedule);

/// A cost file's, for a schedule that has no order yet: each message takes what it takes alone.
CostModel costs_before_order(const CostFile& file, const Shape& shape);

}  // namespace bubblescope
