// Recomputation and layouts go into the model; R's of a schedule come out of it.
#include "tools/model_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/analysis/asynchronous.h"
#include "sim/ir/error.h"
#include "sim/model/stage_recompute.h"

namespace bubblescope {

namespace {

/// Transformer layers per stage. The embedding is on the first stage, the head and what predicts
/// more tokens on the last, as a model has them anyway.
std::vector<std::int64_t> layers_of(const LayerLayout& layout, const Transformer& model) {
  std::vector<std::int64_t> layers;
  std::int64_t predictions = 0;
  for (const StageLayers& stage : layout) {
    layers.push_back(stage.transformers);
    predictions += stage.predictions;
  }
  const std::int64_t on_last = layout.empty() ? 0 : layout.back().predictions;
  if (predictions != on_last || (predictions != 0 && predictions != model.predictions))
    throw Error(
        fmt::format("--layout with --model: all {} m of the model stand on the last stage; "
                    "leave m out or put it there",
                    model.predictions));
  return layers;
}

bool recomputes(const Schedule& schedule) {
  return std::any_of(schedule.order.begin(), schedule.order.end(), [](const RankOrder& ops) {
    return std::any_of(ops.begin(), ops.end(),
                       [](const Op& op) { return op.kind == OpKind::kRecompute; });
  });
}

/// How a step of a model ends unless flags say otherwise: gradients are reduced beside compute, and
/// optimizer steps wait for the norm (Megatron-LM with --overlap-grad-reduce); without flushes each
/// rank steps by itself.
UpdateOptions model_step_end(const Schedule& schedule) {
  if (schedule.forward_only) return {};
  return {schedule.weights.empty() ? OptimizerMode::kBarrier : OptimizerMode::kLocal,
          GradReduction::kOverlap};
}

}  // namespace

ModelOnDevices model_of(const PredictOptions& options) {
  const std::vector<Recompute>& recompute = options.moves.recompute;
  if (recompute.size() > 1)
    throw Error("--model recomputes every stage alike; give --recompute one entry");
  ModelOnDevices on = resolve(options.model);
  if (!recompute.empty()) on.parallel.recompute = recompute[0];
  on.parallel.layers_of_stage = layers_of(options.shape.layout, on.model);
  return on;
}

ModelStep step_of(const ModelOnDevices& on, const Schedule& schedule) {
  ModelStep step = model_step(on, schedule);
  const std::vector<WeightReport> versions = account_for_weights(schedule, {});
  for (std::size_t rank = 0; rank < versions.size(); ++rank)
    step.states[rank].weights *= std::max(1, versions[rank].versions);
  return step;
}

void set_bytes(MemoryModel& memory, const ModelStep& step) {
  memory.activation_bytes = step.activation_bytes;
  memory.static_bytes.clear();
  for (const StateBytes& states : step.states) memory.static_bytes.push_back(states.total());
}

void set_recompute(CostModel& costs, MemoryModel& memory, const Schedule& schedule,
                   const PlacedModel& placed) {
  if (!recomputes(schedule)) return;
  if (placed.on.parallel.recompute != Recompute::kNone)
    throw Error(schedule.name + " recomputes in R's of its own; leave --recompute out");
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const StageRecompute again = stage_recompute(placed.on, placed.step, schedule, stage);
    for (std::size_t slice = 0; slice < slices; ++slice)
      costs.stages[at * slices + slice].recompute = again.time;
    memory.checkpoint_bytes.push_back(memory.activation_bytes[at].forward - again.spared);
  }
}

void set_copies(CostModel& costs, const MemoryModel& memory, const Schedule& schedule,
                const ModelOnDevices& on) {
  if (schedule.keeper_of_rank.empty()) return;
  const auto slices = static_cast<std::size_t>(schedule.shape.slices);
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const std::int32_t rank = schedule.rank_of_stage[at];
    const std::int32_t keeper = schedule.keeper_of_rank[static_cast<std::size_t>(rank)];
    const Link& link = keeper == rank ? on.gpu.host : rank_link(on, rank, keeper);
    const Bytes kept = memory.checkpoint_bytes.empty() ? memory.activation_bytes[at].forward
                                                       : memory.checkpoint_bytes[at];
    for (std::size_t slice = 0; slice < slices; ++slice) {
      StageCost& cost = costs.stages[at * slices + slice];
      cost.evict = cost.load = link.time(static_cast<double>(kept));
    }
  }
}

LowerOptions lowering_of(const Schedule& schedule, const PredictOptions& options) {
  LowerOptions lower = options.cost.lower;
  if (options.model.given() && !options.cost.any_update) lower.update = model_step_end(schedule);
  return lower;
}

}  // namespace bubblescope
