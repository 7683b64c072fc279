// Fills in the models from each source of costs.
#include "sim/predict/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "sim/analysis/asynchronous.h"
#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/lower_collectives.h"
#include "sim/ir/op_kinds.h"
#include "sim/model/balance_layers.h"
#include "sim/model/known_errors.h"
#include "sim/model/model_parts.h"
#include "sim/model/model_step.h"
#include "sim/model/stage_kinds.h"
#include "sim/model/stage_recompute.h"
#include "sim/model/traffic.h"
#include "sim/model/uneven_spread.h"
#include "sim/predict/departures.h"
#include "sim/predict/held_bytes.h"
#include "sim/predict/lengths.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/unused_assumptions.h"

namespace bubblescope::inline sim {

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
Models with_recompute_costs(Models models, const Schedule& schedule) {
  if (!has_kind(schedule, OpKind::kRecompute)) return models;
  const PlacedModel& placed = *models.placed;
  if (placed.on.parallel.recompute != Recompute::kNone)
    throw Error(schedule.name + " recomputes in R's of its own; leave `recompute` out");
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
    const Link link = target == rank ? on.gpu_of(rank).host : find_rank_link(on, rank, target);
    const Bytes kept = memory.checkpoint_bytes.empty() ? memory.activation_bytes[at].forward
                                                       : memory.checkpoint_bytes[at];
    for (std::size_t slice = 0; slice < slices; ++slice) {
      StageCost& cost = models.costs.stages[at * slices + slice];
      cost.evict = cost.load = link.time(static_cast<double>(kept));
    }
  }
  return models;
}

/// Spreads the costs by layers.
CostModel price_layout(const LayoutCosts& layout, const Schedule& schedule) {
  if (schedule.side_stages > 0)
    throw Error(
        "`layout` has no word for the shards of an output layer beside its stages; give "
        "`output_layer`, or `costs` for every stage");
  if (!schedule.graph.is_chain())
    throw Error("`layout` is a chain of layers, and the stages of " + schedule.name +
                " are a graph; give `costs` for every stage");
  if (layout.cost.output_layer > 0)
    throw Error(
        "`layout` divides the costs by layers, and the output layer is one of them (L); leave "
        "`output_layer` out, or give `layout_costs`");
  if (layout.layout.size() != static_cast<std::size_t>(schedule.stages_per_pipeline()))
    throw Error(fmt::format("`layout` has {}, but {} has {}; write one per stage",
                            counted(layout.layout.size(), "stage"), schedule.name,
                            schedule.stages_per_pipeline()));
  return spread_unevenly(layout.cost, schedule,
                         compute_stage_weights(layout.layout, layout.layers));
}

/// Adds the activations and states of a model, in bytes.
MemoryModel with_bytes(MemoryModel memory, const ModelStep& step) {
  memory.activation_bytes = step.activation_bytes;
  memory.static_bytes.clear();
  for (const StateBytes& states : step.states) memory.static_bytes.push_back(states.total());
  return memory;
}

/// Spreads uniform costs over the schedule's stages; with a network, messages share its links.
Models find_uniform_costs(const UniformCosts& uniform, const Schedule& schedule,
                          MemoryModel memory) {
  Models models;
  models.costs = spread(uniform.cost, schedule);
  models.memory = std::move(memory);
  if (!uniform.network) return models;
  models.cluster = make_cluster(*uniform.network, uniform.cost.message, schedule.shape.ranks);
  models.costs = with_uncontended_messages(std::move(models.costs), *models.cluster, schedule);
  return models;
}

/// Distributes uniform costs by layers. Throws Error for a layout of another number of stages.
Models find_layout_costs(const LayoutCosts& layout, const Schedule& schedule, MemoryModel memory) {
  Models models;
  models.costs = price_layout(layout, schedule);
  models.memory = std::move(memory);
  return models;
}

/// Returns everything that a table says; its bytes are added to `memory`. Divisible stages are
/// restaged. Throws Error where the table does not cover the schedule.
Models find_table_costs(const CostTable& given, const Schedule& schedule, MemoryModel memory) {
  const CostTable table = fit_stages(given, schedule);
  MemoryModel bytes = make_memory_model(table, schedule, memory.saved);
  Models models;
  models.costs = make_cost_model(table, schedule, memory.saved);
  models.cluster = make_cluster(table, schedule);
  models.contention = make_contention(table, schedule);
  models.memory = std::move(memory);
  models.memory.activation_bytes = std::move(bytes.activation_bytes);
  models.memory.weight_bytes = std::move(bytes.weight_bytes);
  models.memory.checkpoint_bytes = std::move(bytes.checkpoint_bytes);
  models.memory.by_microbatch = std::move(bytes.by_microbatch);
  models.memory.static_bytes = std::move(bytes.static_bytes);
  return models;
}

}  // namespace

MemoryModel make_uniform_memory(const Shape& shape, const UniformMemory& uniform) {
  using Per = UniformCost::Per;
  MemoryModel memory;
  memory.release = uniform.release;
  memory.unit = uniform.unit;
  memory.saved = uniform.saved;
  memory.unit_parts = (uniform.per == Per::kRank ? shape.chunks : 1) *
                      (uniform.per == Per::kSlice ? 1 : shape.slices);
  memory.cap = uniform.cap;
  memory.cap_bytes = uniform.cap_bytes;
  for (auto* caps : {&memory.cap, &memory.cap_bytes}) {
    if (caps->size() == 1) caps->resize(static_cast<std::size_t>(shape.ranks), caps->front());
    if (!caps->empty() && caps->size() != static_cast<std::size_t>(shape.ranks))
      throw Error(fmt::format("`cap` has {} for {}; give one, or one per rank",
                              counted(caps->size(), "entry"), counted(shape.ranks, "rank")));
  }
  return memory;
}

Models find_model_costs(ModelOnDevices on, const Schedule& schedule, MemoryModel memory) {
  PlacedModel placed{std::move(on), {}};
  placed.on.trains = !schedule.forward_only;
  placed.step = step_of(placed.on, schedule);
  if (placed.on.parallel.ends.any())
    placed.on.parallel.layers_of_stage = count_layers(placed.step.first_layer);
  Models models;
  models.costs = placed.step.costs;
  if (placed.on.parts)
    models.costs.parts =
        run_all_parts(make_model_parts(placed.on, schedule, placed.step), schedule);
  models.memory = with_bytes(std::move(memory), placed.step);
  models.placed = std::move(placed);
  return with_copies(with_recompute_costs(std::move(models), schedule), schedule);
}

namespace {

/// Sets what a model counts by the schedule and the Config, and names the user's choices that
/// change this step and that no published run had.
ModelOnDevices adapt_to_step(ModelOnDevices on, const Schedule& schedule, const Config& config) {
  on.counts_sends = config.lower.send_budget.has_value();
  on.counts_gathered = posts_kind(schedule, OpKind::kUnshard);
  if (posts_kind(schedule, OpKind::kReduceGrad)) on.parallel.whole_gradients = true;
  on.unpublished_schedule =
      find_unpublished_schedule(schedule.name, schedule.shape.ranks, on.model.experts.has_value());
  for (const ReplacedAssumption& replaced : on.replaced_assumptions)
    if (changes_step(replaced, on, schedule)) on.replaced.push_back(replaced.what);
  const std::vector<std::string> departures = find_departures(schedule, config);
  on.replaced.insert(on.replaced.end(), departures.begin(), departures.end());
  return on;
}

/// Finds what the source of the Config says, without what ranks hold for messages.
Models find_source_costs(const Schedule& schedule, const Config& config) {
  MemoryModel memory = make_uniform_memory(schedule.shape, config.memory);
  if (const auto* uniform = std::get_if<UniformCosts>(&config.costs))
    return find_uniform_costs(*uniform, schedule, std::move(memory));
  if (const auto* layout = std::get_if<LayoutCosts>(&config.costs))
    return find_layout_costs(*layout, schedule, std::move(memory));
  if (const auto* table = std::get_if<CostTable>(&config.costs))
    return find_table_costs(*table, schedule, std::move(memory));
  ModelOnDevices on = adapt_to_step(std::get<ModelCosts>(config.costs).on, schedule, config);
  return on.sequence_lengths.empty()
             ? find_model_costs(std::move(on), schedule, std::move(memory))
             : find_length_costs(std::move(on), schedule, std::move(memory));
}

/// The same costs for pairs whose ops run one after the other.
CostModel with_pairs_in_series(CostModel costs) {
  costs.pairs_overlap = false;
  costs.parts.has_pairs = false;
  std::erase_if(costs.parts.run_of, [](const auto& each) { return each.first.second_stage >= 0; });
  return costs;
}

}  // namespace

Models find_models(const Schedule& schedule, const Config& config) {
  Models models = with_held_bytes(find_source_costs(schedule, config), schedule, config);
  if (config.lower.overlap == Overlap::kSerial)
    models.costs = with_pairs_in_series(std::move(models.costs));
  check_cap_unit(config.memory, !models.memory.activation_bytes.empty());
  return models;
}

std::optional<CostModel> find_costs_before_order(const Schedule& unordered, const Config& config) {
  if (const auto* model = std::get_if<ModelCosts>(&config.costs))
    return compute_model_step(model->on, unordered).costs;
  if (const auto* layout = std::get_if<LayoutCosts>(&config.costs))
    return price_layout(*layout, unordered);
  if (const auto* table = std::get_if<CostTable>(&config.costs))
    return make_cost_model(fit_stages(*table, unordered), unordered, config.memory.saved);
  const auto& uniform = std::get<UniformCosts>(config.costs);
  if (uniform.network || uniform.cost.output_layer > 0)
    return find_uniform_costs(uniform, unordered, {}).costs;
  return {};
}

MemoryModel find_memory_before_order(const Schedule& unordered, const Config& config) {
  MemoryModel memory = make_uniform_memory(unordered.shape, config.memory);
  if (const auto* model = std::get_if<ModelCosts>(&config.costs))
    return with_bytes(std::move(memory), compute_model_step(model->on, unordered));
  if (const auto* table = std::get_if<CostTable>(&config.costs))
    return find_table_costs(*table, unordered, std::move(memory)).memory;
  return memory;
}

}  // namespace bubblescope::inline sim
