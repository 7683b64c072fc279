// Passes recomputation and layouts to the model, and takes the costs of a schedule's R from it.
#include "tools/inputs/model_costs.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/ir/error.h"

namespace bubblescope::tools {

namespace {

/// Transformer layers per stage. The embedding is on the first stage; the head and the multi-token
/// prediction layers are on the last, as in the model.
std::vector<std::int64_t> layers_of(const traces::LayerLayout& layout, const Transformer& model) {
  std::vector<std::int64_t> layers;
  std::int64_t predictions = 0;
  for (const traces::StageLayers& stage : layout) {
    layers.push_back(stage.transformers);
    predictions += stage.predictions;
  }
  const std::int64_t on_last = layout.empty() ? 0 : layout.back().predictions;
  if (predictions != on_last || (predictions != 0 && predictions != model.predictions))
    throw Error(
        fmt::format("--layout with --model: all {} m of the model are on the last stage; "
                    "leave m out or put it there",
                    model.predictions));
  return layers;
}

/// The default end of a model's step: gradients are reduced beside compute, and optimizer steps
/// wait for the norm (Megatron-LM with --overlap-grad-reduce); without flushes each rank steps
/// independently.
UpdateOptions model_step_end(const Schedule& schedule) {
  if (schedule.forward_only) return {};
  return {schedule.weights.empty() ? OptimizerMode::kBarrier : OptimizerMode::kLocal,
          GradReduction::kOverlap};
}

}  // namespace

ModelOnDevices resolve_model(const PredictOptions& options) {
  const std::vector<Recompute>& recompute = options.moves.recompute;
  if (recompute.size() > 1)
    throw Error("--model recomputes every stage alike; give --recompute one entry");
  ModelOnDevices on = options.model.on_devices ? *options.model.on_devices : resolve(options.model);
  if (!recompute.empty()) on.parallel.recompute = recompute[0];
  if (options.model.gradients) on.parallel.gradients = *options.model.gradients;
  on.assumptions.pairs_hide_exchange = options.cost.lower.overlap == Overlap::kFused;
  on.parallel.layers_of_stage = layers_of(options.shape.layout, on.model);
  return on;
}

LowerOptions choose_lowering(const Schedule& schedule, const PredictOptions& options) {
  LowerOptions lower = options.cost.lower;
  if (options.model.given() && !options.cost.any_update) lower.update = model_step_end(schedule);
  return lower;
}

}  // namespace bubblescope::tools
