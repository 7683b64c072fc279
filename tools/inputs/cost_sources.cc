// Loads costs from each source: a model, a cost file, a layout, or flags.
#include "tools/inputs/cost_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/model/model_step.h"
#include "sim/model/uneven_spread.h"
#include "tools/inputs/memory_caps.h"
#include "tools/inputs/model_costs.h"
#include "tools/print.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

namespace {

CostModel layout_costs(const Schedule& schedule, const PredictOptions& options) {
  const LayerLayout& layout = options.shape.layout;
  if (layout.size() != static_cast<std::size_t>(schedule.stages_per_pipeline()))
    throw Error(fmt::format("--layout has {} stages, but {} has {}; write one per stage",
                            layout.size(), schedule.name, schedule.stages_per_pipeline()));
  return spread_unevenly(options.cost.uniform, schedule,
                         compute_stage_weights(layout, options.shape.layer_costs));
}

/// Comparing a full backward other than I + W with split ones would be misleading.
void warn_of_unequal_backwards(const Schedule& schedule, const UniformCost& cost) {
  if (!has_kind(schedule, OpKind::kInputGrad) || has_kind(schedule, OpKind::kBackward) ||
      cost.full_backward() == cost.input_grad + cost.weight_grad)
    return;
  print_message("bubblescope: {} splits backwards: they take --i {} and --w {}, not --b {}\n",
                schedule.name, to_text(cost.input_grad), to_text(cost.weight_grad),
                to_text(cost.full_backward()));
}

std::string uniform_text(const UniformCost& cost) {
  const char* per = cost.per == UniformCost::Per::kRank    ? "rank"
                    : cost.per == UniformCost::Per::kChunk ? "chunk"
                                                           : "slice";
  return fmt::format("f {}, b {}, i {}, w {} per {}, p2p {}", to_text(cost.forward),
                     to_text(cost.full_backward()), to_text(cost.input_grad),
                     to_text(cost.weight_grad), per, to_text(cost.message));
}

Models models_from_source(const ValidSchedule& schedule, const PredictOptions& options) {
  const CostOptions& cost = options.cost;
  MemoryModel memory = make_uniform_memory(schedule->shape, options.memory, cost.uniform.per);
  if (options.model.given())
    return load_model_costs(resolve_model(options), schedule, std::move(memory));
  if (!cost.file.empty()) return load_file_costs(cost_file_of(cost), schedule, std::move(memory));
  Models models;
  if (!options.shape.layout.empty()) {
    models.costs = layout_costs(schedule, options);
  } else {
    warn_of_unequal_backwards(schedule, cost.uniform);
    models = load_flag_costs(cost.uniform, cost.network, schedule);
  }
  models.memory = std::move(memory);
  return models;
}

}  // namespace

MemoryModel make_uniform_memory(const Shape& shape, const MemoryOptions& options,
                                UniformCost::Per per) {
  using Per = UniformCost::Per;
  MemoryModel memory;
  memory.release = options.release;
  memory.unit = options.unit;
  memory.saved = options.saved;
  memory.unit_parts =
      (per == Per::kRank ? shape.chunks : 1) * (per == Per::kSlice ? 1 : shape.slices);
  memory.cap = options.cap;
  memory.cap_bytes = options.cap_bytes;
  for (auto* caps : {&memory.cap, &memory.cap_bytes}) {
    if (caps->size() == 1) caps->resize(static_cast<std::size_t>(shape.ranks), caps->front());
    if (!caps->empty() && caps->size() != static_cast<std::size_t>(shape.ranks))
      throw Error(fmt::format("--cap has {} entries for {} ranks; give one, or one per rank",
                              caps->size(), shape.ranks));
  }
  return memory;
}

std::optional<CostModel> load_costs_before_order(const Shape& shape,
                                                 const PredictOptions& options) {
  const Schedule unordered = make_unordered_schedule(shape);
  const CostOptions& cost = options.cost;
  if (options.model.given()) return compute_model_step(resolve_model(options), unordered).costs;
  if (!options.shape.layout.empty()) return layout_costs(unordered, options);
  if (!cost.file.empty()) return load_costs_before_order(cost_file_of(cost), shape);
  if (cost.network) return load_flag_costs(cost.uniform, cost.network, unordered).costs;
  return {};
}

MemoryModel load_memory_before_order(const Shape& shape, const PredictOptions& options) {
  const Schedule unordered = make_unordered_schedule(shape);
  MemoryModel memory = make_uniform_memory(shape, options.memory, options.cost.uniform.per);
  if (options.model.given())
    return with_bytes(std::move(memory), compute_model_step(resolve_model(options), unordered));
  if (!options.cost.file.empty())
    return load_file_costs(cost_file_of(options.cost), unordered, std::move(memory)).memory;
  return memory;
}

Models load_models(const ValidSchedule& schedule, const PredictOptions& options) {
  expect_one_cost_source(options);
  Models models = models_from_source(schedule, options);
  check_cap_unit(options.memory, !models.memory.activation_bytes.empty());
  return models;
}

std::string costs_text(const Models& models, const PredictOptions& options) {
  const LayerLayout& layout = options.shape.layout;
  std::string text = models.placed               ? describe_model(models.placed->on)
                     : options.cost.file.empty() ? uniform_text(options.cost.uniform)
                                                 : options.cost.file;
  if (!layout.empty()) text += ", layout " + traces::to_string(layout);
  if (options.cost.network) text += ", network " + to_string(*options.cost.network);
  return text;
}

}  // namespace bubblescope::tools
