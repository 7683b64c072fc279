// Costs and memory of a schedule's ops, from each of the sources.
//
// find_models() returns the same complete value for each source. Schedules that search for an order
// need costs before they have one; the functions named ..._before_order() give what does not depend
// on it.
#pragma once

#include <optional>

#include "sim/model/cluster.h"
#include "sim/model/contention.h"
#include "sim/model/cost_model.h"
#include "sim/model/memory_model.h"
#include "sim/model/model_step.h"
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

/// A model on devices, and the stages and ranks that result.
struct PlacedModel {
  ModelOnDevices on;
  ModelStep step;
};

/// Costs and memory of a schedule's ops.
struct Models {
  CostModel costs;
  MemoryModel memory;
  std::optional<Cluster> cluster;        ///< where messages share links
  std::optional<Contention> contention;  ///< where ops slow each other
  std::optional<PlacedModel> placed;     ///< where a model gives them
};

/// Returns the memory of any schedule of this shape. Throws Error for a cap with neither one entry
/// nor one per rank.
MemoryModel make_uniform_memory(const Shape& shape, const UniformMemory& uniform);

/// Returns the costs of a model with the schedule's weight versions, recomputation and copies; its
/// bytes are added to `memory`. Throws Error for what a model cannot have.
Models find_model_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory);

/// Returns what the source of the Config says. Throws Error also for a cap in bytes where
/// activations have none.
Models find_models(const Schedule& schedule, const Config& config);

/// Returns the costs of a schedule without an order; messages are priced without contention.
/// nullopt where costs are the same for all stages and need no network.
std::optional<CostModel> find_costs_before_order(const Schedule& unordered, const Config& config);

/// Returns the memory of a schedule without an order: the bytes of activations and states, and
/// caps.
MemoryModel find_memory_before_order(const Schedule& unordered, const Config& config);

}  // namespace bubblescope::inline sim
