// Costs and memory of a schedule's ops, from each of the sources.
#pragma once

#include <optional>

#include "sim/model/cluster.h"
#include "sim/model/contention.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "tools/flags/network_options.h"
#include "tools/inputs/model_costs.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

/// Costs and memory of a schedule's ops.
struct Models {
  CostModel costs;
  MemoryModel memory;
  std::optional<Cluster> cluster;        ///< where messages share links
  std::optional<Contention> contention;  ///< where ops slow each other
  std::optional<PlacedModel> placed;     ///< where a model gives them
};

/// Whether any rank runs an op of this kind.
bool has_kind(const Schedule& schedule, OpKind kind);

/// Adds the activations and states of a model, in bytes.
MemoryModel with_bytes(MemoryModel memory, const ModelStep& step);

/// Returns the costs of a model with the schedule's weight versions, recomputation and copies;
/// `memory` is that of the flags. Throws Error for what a model cannot have.
Models load_model_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory);

/// Returns everything that a cost file says; `memory` is that of the flags.
Models load_file_costs(const CostTable& file, const Schedule& schedule, MemoryModel memory);

/// Returns the costs of flags, spread over the schedule's stages, and their network. No memory.
Models load_flag_costs(const UniformCost& cost, const std::optional<UniformNetwork>& network,
                       const Schedule& schedule);

/// Returns the costs of a file for a schedule without an order; messages are priced without
/// contention.
CostModel load_costs_before_order(const CostTable& file, const Shape& shape);

}  // namespace bubblescope::tools
