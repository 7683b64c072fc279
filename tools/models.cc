// One place for what each source sets.
#include "tools/models.h"

#include <utility>

#include "sim/model/model_step.h"
#include "sim/model/traffic.h"

namespace bubblescope {

Models file_models(const CostFile& file, const Schedule& schedule, MemoryModel memory) {
  MemoryModel bytes = memory_model(file, schedule);
  Models models;
  models.costs = cost_model(file, schedule);
  models.cluster = cluster(file, schedule);
  models.contention = contention(file, schedule);
  models.memory = std::move(memory);
  models.memory.activation_bytes = std::move(bytes.activation_bytes);
  models.memory.weight_bytes = std::move(bytes.weight_bytes);
  models.memory.checkpoint_bytes = std::move(bytes.checkpoint_bytes);
  models.memory.static_bytes = std::move(bytes.static_bytes);
  return models;
}

Models flag_models(const UniformCost& cost, const std::optional<NetworkOptions>& network,
                   const Schedule& schedule) {
  Models models;
  models.costs = spread(cost, schedule);
  if (!network) return models;
  models.cluster = cluster_of(*network, cost.message, schedule.shape.ranks);
  models.costs = with_messages_alone(std::move(models.costs), *models.cluster, schedule);
  return models;
}

CostModel costs_before_order(const CostFile& file, const Shape& shape) {
  const Schedule unordered = unordered_schedule(shape);
  CostModel costs = cost_model(file, unordered);
  const std::optional<Cluster> shared = cluster(file, unordered);
  return shared ? with_messages_alone(std::move(costs), *shared, unordered) : costs;
}

}  // namespace bubblescope
