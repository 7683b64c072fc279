// Evaluates configuration -> layers of every stage -> costs -> Timeline -> BubbleReport -> Plan.
#include "tools/plan/model_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "sim/ir/lower.h"
#include "sim/ir/size_limits.h"
#include "sim/model/known_errors.h"
#include "sim/model/module_sets.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/memory_caps.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/moves.h"
#include "tools/flags/field_names.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/schedule_request.h"
#include "tools/inputs/searched_stages.h"
#include "traces/costs/megatron_layout.h"

namespace bubblescope::tools {

namespace {

/// Returns `plan` with a note on its insufficient memory.
Outcome too_full(std::optional<Plan> plan, const char* what, Bytes needed, Bytes usable) {
  return {std::move(plan),
          fmt::format("{} {} of {}, {} too much", what, format_bytes(needed), format_bytes(usable),
                      format_bytes(needed - usable)),
          static_cast<double>(needed) / static_cast<double>(usable) - 1};
}

/// The embedding is on the first stage; the head and the multi-token prediction layers are on the
/// last. Where all ranks share the head, layouts name it there as well.
std::string layout_text(const LayerCounts& layers, const Transformer& model) {
  LayerLayout layout;
  for (const std::int64_t count : layers)
    layout.push_back({0, static_cast<std::int32_t>(count), 0, 0});
  layout.front().embeddings = 1;
  layout.back().predictions = static_cast<std::int32_t>(model.predictions);
  layout.back().losses = 1;
  return traces::to_string(layout);
}

ModelOnDevices use_smallest_states(ModelOnDevices on) {
  on.parallel.shrink_gradients(Gradients::kLean);
  return on;
}

Configuration recompute_modules(Configuration configuration, RecomputeModules modules) {
  configuration.recompute = modules.empty() ? Recompute::kNone : Recompute::kSelective;
  configuration.modules = modules;
  return configuration;
}

/// Whether ranks hold more than a split's load says: what they gather ahead or still send.
bool holds_more(const Configuration& configuration) {
  return configuration.lookahead || configuration.send_budget > 0;
}

/// Whether configurations differ only in the split.
bool are_alike(Configuration left, const Configuration& right) {
  left.split = right.split;
  return left == right;
}

}  // namespace

const ModelEvaluator::Ordered& ModelEvaluator::order(const Configuration& configuration) {
  const ScheduleDef& def = find_schedule(configuration.schedule);
  if (ordered_ && !def.reads_costs && ordered_->name == configuration.schedule &&
      ordered_->asked == configuration.shape &&
      ordered_->send_budget == configuration.send_budget &&
      ordered_->lookahead == configuration.lookahead)
    return *ordered_;
  const PredictInputs inputs = planner_.inputs_of(configuration);
  const Config& config = inputs.config();
  ordered_.reset();
  ValidSchedule schedule =
      apply_moves(build_schedule(def, make_request(def, inputs, kMaxPlannedOps)), config.moves);
  std::variant<Program, Deadlock> program = lower(schedule, choose_lowering(schedule, config));
  return ordered_.emplace(Ordered{configuration.schedule, configuration.shape,
                                  configuration.send_budget, configuration.lookahead, config,
                                  std::move(schedule), std::move(program)});
}

std::optional<SplitLoad> ModelEvaluator::find_excess_alone(
    const ModelOnDevices& with_smallest_states, const LayerAssigner& assigner,
    const ValidSchedule& schedule, const SplitChoice& split_choice) {
  const auto is_worth_trying = [](const std::optional<LayerCounts>& layers) {
    return layers.has_value();
  };
  const bool alone =
      split_choice.layers[0] &&
      std::count_if(split_choice.layers.begin(), split_choice.layers.end(), is_worth_trying) == 1;
  if (!alone || !schedule->offload_target_of_rank.empty()) return {};
  if (assigner.load(*split_choice.layers[0]).fits()) return {};
  const SplitLoad smallest =
      LayerAssigner(with_smallest_states, schedule).load(*split_choice.layers[0]);
  return smallest.fits() ? std::nullopt : std::optional(smallest);
}

std::optional<LayerCounts> ModelEvaluator::fit_layers(const ModelOnDevices& on,
                                                      const ValidSchedule& schedule,
                                                      LayerSplit split) const {
  const LayerAssigner assigner(on, schedule);
  std::optional<LayerCounts> layers = assigner.assign_layers(split);
  if (!layers) return {};
  const SplitLoad load = assigner.load(*layers);
  if (!load.fits() || !planner_.allows(load.fullest_rank)) return {};
  return layers;
}

std::optional<Outcome> ModelEvaluator::refuse_states(const ModelOnDevices& here, const Shape& shape,
                                                     const Schedule& without_order) const {
  const std::vector<Bytes> usable_memories = here.usable_memories(shape.ranks);
  const Bytes usable = *std::max_element(usable_memories.begin(), usable_memories.end());
  Bytes needed = min_bytes(here, without_order);
  if (needed > usable && planner_.may_shrink_gradients())
    needed = min_bytes(use_smallest_states(here), without_order);
  if (needed <= usable) return {};
  return too_full({}, "states and one micro-batch take", needed, usable);
}

void ModelEvaluator::choose_modules(const Configuration& configuration,
                                    const Schedule& without_order) {
  std::vector<RecomputeModules> sets{{}};
  const std::vector<RecomputeModules> listed = list_module_sets(planner_.on(configuration));
  sets.insert(sets.end(), listed.begin(), listed.end());
  const auto with = [&](std::size_t set) {
    return planner_.on(recompute_modules(configuration, sets[set]));
  };
  if (auto refused = refuse_states(with(sets.size() - 1), configuration.shape, without_order)) {
    split_choice_->refused = *std::move(refused);
    return;
  }
  const Ordered& ordered = order(configuration);
  const ValidSchedule& schedule = ordered.schedule;
  if (std::holds_alternative<Deadlock>(ordered.program)) return;
  if (!schedule->offload_target_of_rank.empty()) return;
  const std::vector<LayerSplit>& splits = planner_.splits();
  std::size_t end = sets.size();  // of the sets that are faster than the one found
  for (std::size_t at = 0; at < splits.size(); ++at) {
    if (at > 0 && splits[at] != LayerSplit::kFitted) continue;
    // The last set takes the least memory.
    if (end == 0 || !fit_layers(with(end - 1), schedule, splits[at])) continue;
    std::size_t set = 0;
    std::optional<LayerCounts> layers = fit_layers(with(set), schedule, splits[at]);
    while (!layers) layers = fit_layers(with(++set), schedule, splits[at]);
    end = set;
    const bool is_tried = planner_.tries_without_recomputation() && !holds_more(configuration);
    if (set == 0 && is_tried) continue;
    split_choice_->layers[at] = std::move(layers);
    split_choice_->modules[at] = sets[set];
  }
  if (end == sets.size())
    split_choice_->refused.refusal = "no set of modules to recompute makes it fit";
}

const ModelEvaluator::SplitChoice& ModelEvaluator::choose_splits(
    const Configuration& configuration) {
  if (split_choice_ && are_alike(split_choice_->first, configuration)) return *split_choice_;
  split_choice_.emplace().first = configuration;
  split_choice_->layers.resize(planner_.splits().size());
  split_choice_->modules.resize(planner_.splits().size());
  try {
    const Schedule without_order =
        place_in_loop(find_schedule(configuration.schedule), configuration.shape);
    if (configuration.chooses_modules) {
      choose_modules(configuration, without_order);
      return *split_choice_;
    }
    const ModelOnDevices here = planner_.on(configuration);
    if (auto refused = refuse_states(here, configuration.shape, without_order))
      split_choice_->refused = *std::move(refused);
    else
      assign_splits(configuration, here);
  } catch (const Error& error) {
    if (is_of_machine(error.fault())) throw;
    split_choice_->refused.refusal = name_flags(error.what());
  }
  return *split_choice_;
}

void ModelEvaluator::assign_splits(const Configuration& configuration, const ModelOnDevices& here) {
  const Ordered& ordered = order(configuration);
  if (const auto* deadlock = std::get_if<Deadlock>(&ordered.program)) {
    split_choice_->refused.refusal = "deadlock: " + to_string(*deadlock);
    return;
  }
  const std::vector<LayerSplit>& splits = planner_.splits();
  const LayerAssigner assigner(here, ordered.schedule);
  split_choice_->layers = assigner.select_splits(splits);
  const ModelOnDevices with_smallest_states =
      planner_.may_shrink_gradients() ? use_smallest_states(here) : here;
  if (const auto excess =
          find_excess_alone(with_smallest_states, assigner, ordered.schedule, *split_choice_)) {
    split_choice_->refused = too_full({},
                                      planner_.may_shrink_gradients()
                                          ? "with the smallest gradients the fullest rank needs"
                                          : "the fullest rank needs",
                                      excess->fullest_rank, excess->usable());
    return;
  }
  const bool none = std::none_of(split_choice_->layers.begin(), split_choice_->layers.end(),
                                 [](const auto& layers) { return layers.has_value(); });
  if (none)
    split_choice_->refused.refusal = fmt::format(
        "{} cannot be assigned to {} by --split {}", counted(here.model.layers, "layer"),
        counted(ordered.schedule->stages_per_pipeline() - ordered.schedule->side_stages, "stage"),
        name_of(kLayerSplits, splits.front()));
}

/// Adds a model's rates to a plan: how well the devices are used.
Plan ModelEvaluator::with_rates(Plan plan, const ModelOnDevices& here) const {
  const ModelRates rates = compute_model_rates(here, plan.configuration.shape, plan.step);
  plan.tokens_per_second = rates.tokens_per_second;
  plan.mfu = rates.mfu;
  return plan;
}

std::optional<Outcome> ModelEvaluator::refuse_memory(Plan plan, const PredictedStep& step) {
  const ModelFit fit = find_fit(*step.models.placed, step.report);
  plan.peak_bytes = fit.peak;
  plan.head_room = fit.head_room;
  if (!fit.fits())
    return too_full(std::move(plan), "the fullest rank needs", fit.peak, fit.peak + fit.head_room);
  const std::vector<RankOverCap> over =
      list_ranks_over_cap(collect_peaks(step.report), step.models.memory);
  if (over.empty()) return {};
  return Outcome{std::move(plan), name_flags(to_string(over.front().problem)), over.front().excess,
                 true};
}

Outcome ModelEvaluator::simulate_plan(const Configuration& configuration,
                                      const LayerCounts& layers) const {
  Config config = ordered_->config;
  config.detail = detail_;
  auto& costs = std::get<ModelCosts>(config.costs);
  costs.on = planner_.on(configuration);
  // A balanced split is only where the search for one begins: as in simulate, it is replaced by the
  // split near it with the shortest step.
  LayerCounts& given = configuration.split == LayerSplit::kBalanced
                           ? costs.balanced
                           : costs.on.parallel.layers_of_stage;
  given = layers;
  const PredictedStep step =
      predict_step(ordered_->schedule, std::get<Program>(ordered_->program), config);
  const ModelOnDevices& here = step.models.placed->on;
  Plan plan;
  plan.configuration = configuration;
  plan.gradients = here.parallel.gradients;
  if (auto refused = refuse_memory(plan, step)) return *std::move(refused);
  plan = with_rates(summarize(configuration, step.report), here);
  const LayerCounts& chosen = here.parallel.layers_of_stage;
  plan.layout = layout_text(chosen.empty() ? layers : chosen, here.model);
  plan.gradients = here.parallel.gradients;
  plan.head_room = find_fit(*step.models.placed, step.report).head_room;
  plan.no_errors = find_nearest_errors(here).why_none;
  return {std::move(plan), ""};
}

Outcome ModelEvaluator::simulate_modules(const Configuration& configuration,
                                         std::size_t split) const {
  const RecomputeModules chosen = split_choice_->modules[split];
  const Outcome outcome =
      simulate_plan(recompute_modules(configuration, chosen), *split_choice_->layers[split]);
  if (outcome.excess == 0 || !holds_more(configuration)) return outcome;
  const std::vector<RecomputeModules> sets = list_module_sets(planner_.on(configuration));
  const auto found = std::find(sets.begin(), sets.end(), chosen);
  for (auto set = found == sets.end() ? sets.begin() : found + 1; set != sets.end(); ++set) {
    const Configuration next = recompute_modules(configuration, *set);
    const auto layers = fit_layers(planner_.on(next), ordered_->schedule, configuration.split);
    if (!layers) continue;
    Outcome smaller = simulate_plan(next, *layers);
    if (smaller.excess == 0) return smaller;
  }
  return outcome;
}

Outcome ModelEvaluator::evaluate(const Configuration& configuration) {
  const std::vector<LayerSplit>& splits = planner_.splits();
  const auto split = static_cast<std::size_t>(
      std::find(splits.begin(), splits.end(), configuration.split) - splits.begin());
  const SplitChoice& split_choice = choose_splits(configuration);
  if (!split_choice.refused.refusal.empty()) return split == 0 ? split_choice.refused : Outcome{};
  if (!split_choice.layers[split]) return {};
  try {
    return configuration.chooses_modules
               ? simulate_modules(configuration, split)
               : simulate_plan(configuration, *split_choice.layers[split]);
  } catch (const Error& error) {
    if (is_of_machine(error.fault())) throw;
    return {{}, name_flags(error.what())};
  }
}

}  // namespace bubblescope::tools
