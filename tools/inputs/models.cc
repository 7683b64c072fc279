// Fills in the models from each source of costs.
#include "tools/inputs/models.h"

#include <algorithm>
#include <utility>

#include "sim/analysis/asynchronous.h"
#include "sim/ir/error.h"
#include "sim/model/model_step.h"
#include "sim/model/stage_recompute.h"
#include "sim/model/traffic.h"

namespace bubblescope::tools {

namespace {

/// The step, with as many weight versions on each rank as the schedule holds.
ModelStep step_of(const ModelOnDevices& on, const Schedule& schedule) {
  ModelStep step = compute_model_step(on, schedule);
  const std::vector<WeightReport> versions = account_for_weights(schedule, {});
  for (std::size_t rank = 0; rank < versions.size(); ++rank)
    step.states[rank].weights *= std::max(1, versions[rank].versions);
  return step;
}

/// The R ops of a schedule take the time and save the bytes of their stages.
Models with_recompute(Models models, const Schedule& schedule) {
  if (!has_kind(schedule, OpKind::kRecompute)) return models;
  const PlacedModel& placed = *models.placed;
  if (placed.on.parallel.recompute != Recompute::kNone)
    throw Error(schedule.name + " recomputes in R's of its own; leave --recompute out");
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  MemoryModel& memory = models.memory;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const StageRecompute again = estimate_stage_recompute(placed.on, placed.step, schedule, stage);
    for (std::size_t slice = 0; slice < slices; ++slice)
      models.costs.stages[at * slices + slice].recompute = again.time;
    memory.checkpoint_bytes.push_back(memory.activation_bytes[at].forward - again.freed_bytes);
  }
  return models;
}

/// Copies move a forward's saved bytes over the link to the host's memory or to the offload target.
Models with_copies(Models models, const Schedule& schedule) {
  if (schedule.offload_target_of_rank.empty()) return models;
  const ModelOnDevices& on = models.placed->on;
  const MemoryModel& memory = models.memory;
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const std::int32_t rank = schedule.rank_of_stage[at];
    const std::int32_t target = schedule.offload_target_of_rank[static_cast<std::size_t>(rank)];
    const Link& link = target == rank ? on.gpu.host : find_rank_link(on, rank, target);
    const Bytes kept = memory.checkpoint_bytes.empty() ? memory.activation_bytes[at].forward
                                                       : memory.checkpoint_bytes[at];
    for (std::size_t slice = 0; slice < slices; ++slice) {
      StageCost& cost = models.costs.stages[at * slices + slice];
      cost.evict = cost.load = link.time(static_cast<double>(kept));
    }
  }
  return models;
}

}  // namespace

bool has_kind(const Schedule& schedule, OpKind kind) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [kind](const RankOrder& ops) {
    return std::any_of(ops.begin(), ops.end(), [kind](const Op& op) { return op.kind == kind; });
  });
}

MemoryModel with_bytes(MemoryModel memory, const ModelStep& step) {
  memory.activation_bytes = step.activation_bytes;
  memory.static_bytes.clear();
  for (const StateBytes& states : step.states) memory.static_bytes.push_back(states.total());
  return memory;
}

Models load_model_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory) {
  PlacedModel placed{std::move(on), {}};
  placed.step = step_of(placed.on, schedule);
  Models models;
  models.costs = placed.step.costs;
  models.memory = with_bytes(std::move(memory), placed.step);
  models.placed = std::move(placed);
  return with_copies(with_recompute(std::move(models), schedule), schedule);
}

Models load_file_costs(const CostTable& file, const Schedule& schedule, MemoryModel memory) {
  MemoryModel bytes = make_memory_model(file, schedule);
  Models models;
  models.costs = make_cost_model(file, schedule);
  models.cluster = make_cluster(file, schedule);
  models.contention = make_contention(file, schedule);
  models.memory = std::move(memory);
  models.memory.activation_bytes = std::move(bytes.activation_bytes);
  models.memory.weight_bytes = std::move(bytes.weight_bytes);
  models.memory.checkpoint_bytes = std::move(bytes.checkpoint_bytes);
  models.memory.static_bytes = std::move(bytes.static_bytes);
  return models;
}

Models load_flag_costs(const UniformCost& cost, const std::optional<UniformNetwork>& network,
                       const Schedule& schedule) {
  Models models;
  models.costs = spread(cost, schedule);
  if (!network) return models;
  models.cluster = make_cluster(*network, cost.message, schedule.shape.ranks);
  models.costs = with_uncontended_messages(std::move(models.costs), *models.cluster, schedule);
  return models;
}

CostModel load_costs_before_order(const CostTable& file, const Shape& shape) {
  const Schedule unordered = make_unordered_schedule(shape);
  CostModel costs = make_cost_model(file, unordered);
  const std::optional<Cluster> shared = make_cluster(file, unordered);
  return shared ? with_uncontended_messages(std::move(costs), *shared, unordered) : costs;
}

}  // namespace bubblescope::tools
