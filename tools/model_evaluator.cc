// Evaluates configuration -> layers of every stage -> costs -> Timeline -> BubbleReport -> Plan.
#include "tools/model_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/analysis/memory_curve.h"
#include "sim/engine/simulate.h"
#include "sim/ir/bytes_text.h"
#include "sim/ir/lower.h"
#include "tools/memory_caps.h"
#include "tools/model_costs.h"
#include "tools/model_fit.h"
#include "tools/predict.h"
#include "traces/megatron_layout.h"

namespace bubblescope {

namespace {

/// Returns `plan` with a note on its insufficient memory.
Outcome too_full(std::optional<Plan> plan, const char* what, Bytes needed, Bytes usable) {
  return {std::move(plan), fmt::format("{} {} of {}", what, bytes_text(needed), bytes_text(usable)),
          static_cast<double>(needed) / static_cast<double>(usable) - 1};
}

/// The embedding is on the first stage; the head and the multi-token prediction layers are on the
/// last.
std::string layout_text(const LayerCounts& layers, const Transformer& model) {
  LayerLayout layout;
  for (const std::int64_t count : layers)
    layout.push_back({0, static_cast<std::int32_t>(count), 0, 0});
  layout.front().embeddings = 1;
  layout.back().predictions = static_cast<std::int32_t>(model.predictions);
  layout.back().losses = 1;
  return to_string(layout);
}

/// A report of what ranks hold, and of nothing else.
BubbleReport held_alone(const std::vector<Peak>& peaks) {
  BubbleReport report;
  report.ranks.resize(peaks.size());
  for (std::size_t rank = 0; rank < peaks.size(); ++rank) report.ranks[rank].peak = peaks[rank];
  return report;
}

ModelOnDevices with_least_states(ModelOnDevices on) {
  on.parallel.gradients = Gradients::kLean;
  return on;
}

/// Whether configurations differ only in the split.
bool are_alike(Configuration left, const Configuration& right) {
  left.split = right.split;
  return left == right;
}

}  // namespace

const ModelEvaluator::Ordered& ModelEvaluator::order(const Configuration& configuration,
                                                     const ModelStep& unordered) {
  const ScheduleDef& def = find_schedule(configuration.schedule);
  if (ordered_ && !def.reads_costs && ordered_->name == configuration.schedule &&
      ordered_->asked == configuration.shape)
    return *ordered_;
  const PredictOptions options = planner_.options_of(configuration);
  PredictOptions fitting = fitted(options, def);
  fitting.model = {};  // its costs before the order are those of this configuration
  ScheduleRequest request = request_of(def, fitting);
  if (def.reads_costs) {
    request.stage_costs = unordered.costs;
    if (!request.memory.cap_bytes.empty())
      request.memory.cap = unit_caps(with_bytes(request.memory, unordered), request.shape);
  }
  ordered_.reset();
  ValidSchedule schedule = build_schedule(def, std::move(request));
  std::variant<Program, Deadlock> program = lower(schedule, lowering_of(schedule, options));
  return ordered_.emplace(Ordered{configuration.schedule, configuration.shape, std::move(schedule),
                                  std::move(program)});
}

std::optional<Bytes> ModelEvaluator::too_full_alone(const ModelOnDevices& leanest,
                                                    const LayerDealer& dealer,
                                                    const ValidSchedule& schedule,
                                                    const Dealt& dealt) {
  const auto is_dealt = [](const std::optional<LayerCounts>& layers) { return layers.has_value(); };
  const bool alone =
      dealt.layers[0] && std::count_if(dealt.layers.begin(), dealt.layers.end(), is_dealt) == 1;
  const Bytes usable = leanest.usable_memory();
  if (!alone || !schedule->keeper_of_rank.empty()) return {};
  if (dealer.load(*dealt.layers[0]).fullest_rank <= usable) return {};
  const Bytes fullest = LayerDealer(leanest, schedule).load(*dealt.layers[0]).fullest_rank;
  return fullest > usable ? std::optional(fullest) : std::nullopt;
}

const ModelEvaluator::Dealt& ModelEvaluator::deal(const Configuration& configuration) {
  if (dealt_ && are_alike(dealt_->first, configuration)) return *dealt_;
  dealt_.emplace().first = configuration;
  const std::vector<LayerSplit>& splits = planner_.splits();
  dealt_->layers.resize(splits.size());
  try {
    const ModelOnDevices here = planner_.on(configuration);
    const ModelStep unordered = model_step(here, configuration.shape);
    const Bytes usable = here.usable_memory();
    const ModelOnDevices leanest = planner_.may_shrink_gradients() ? with_least_states(here) : here;
    Bytes least = least_bytes(unordered);
    if (least > usable) least = least_bytes(model_step(leanest, configuration.shape));
    if (least > usable) {
      dealt_->refused = too_full({}, "states and one micro-batch take", least, usable);
      return *dealt_;
    }
    const Ordered& ordered = order(configuration, unordered);
    if (const auto* deadlock = std::get_if<Deadlock>(&ordered.program)) {
      dealt_->refused.refusal = "deadlock: " + to_string(*deadlock);
      return *dealt_;
    }
    const LayerDealer dealer(here, ordered.schedule);
    dealt_->layers = dealer.worth_trying(splits);
    if (const auto fullest = too_full_alone(leanest, dealer, ordered.schedule, *dealt_)) {
      dealt_->refused = too_full({}, "the fullest rank needs", *fullest, usable);
      return *dealt_;
    }
    const bool none = std::none_of(dealt_->layers.begin(), dealt_->layers.end(),
                                   [](const auto& layers) { return layers.has_value(); });
    if (none)
      dealt_->refused.refusal = fmt::format(
          "{} layers cannot be dealt to {} stages by --split {}", here.model.layers,
          ordered.schedule->stages_per_pipeline(), name_of(kLayerSplits, splits.front()));
  } catch (const Error& error) {
    if (error.fault() == Fault::kMachine) throw;
    dealt_->refused.refusal = error.what();
  }
  return *dealt_;
}

/// Adds a model's rates to a plan: how well the devices are used.
Plan ModelEvaluator::with_rates(Plan plan, const ModelOnDevices& here) const {
  const ModelRates rates = model_rates(here, plan.configuration.shape, plan.step);
  plan.tokens_per_second = rates.tokens_per_second;
  plan.mfu = rates.mfu;
  return plan;
}

Outcome ModelEvaluator::simulate_plan(const Configuration& configuration,
                                      const LayerCounts& layers) const {
  ModelOnDevices here = planner_.on(configuration);
  here.parallel.layers_of_stage = layers;
  return simulate_plan(configuration, std::move(here));
}

std::optional<Outcome> ModelEvaluator::refuse_memory(const Configuration& configuration,
                                                     const ModelOnDevices& here,
                                                     const Models& models,
                                                     const BubbleReport& held) const {
  Plan plan;
  plan.configuration = configuration;
  plan.gradients = here.parallel.gradients;
  const ModelFit fit = fit_of(*models.placed, held);
  plan.peak_bytes = fit.peak;
  plan.head_room = fit.head_room;
  if (!fit.fits())
    return too_full(std::move(plan), "the fullest rank needs", fit.peak, here.usable_memory());
  const Problems over = over_cap(peaks_of(held), models.memory);
  if (over.empty()) return {};
  if (models.memory.cap_bytes.empty()) return Outcome{std::move(plan), over[0].message};
  const Bytes cap =
      *std::min_element(models.memory.cap_bytes.begin(), models.memory.cap_bytes.end());
  return too_full(std::move(plan), "the fullest rank needs", fit.peak, cap);
}

Outcome ModelEvaluator::simulate_plan(const Configuration& configuration,
                                      ModelOnDevices here) const {
  const ValidSchedule& schedule = ordered_->schedule;
  const auto& program = std::get<Program>(ordered_->program);
  const Models models = placed_models(
      here, schedule, uniform_memory(schedule->shape, planner_.options_of(configuration).memory));
  const Timeline timeline = simulate(program, price(program, models.costs));
  // What does not fit need not be looked into.
  const BubbleReport held = held_alone(find_peaks(schedule, program, timeline, models.memory));
  if (planner_.may_shrink_gradients())
    if (const auto smaller = smaller_gradients(*models.placed, held)) {
      here.parallel.gradients = *smaller;
      return simulate_plan(configuration, std::move(here));
    }
  if (auto refused = refuse_memory(configuration, here, models, held)) return *std::move(refused);
  const BubbleReport report = analyze_briefly(schedule, program, timeline, models.memory, bound_);
  Plan plan = with_rates(summarize(configuration, report), here);
  plan.layout = layout_text(here.parallel.layers_of_stage, here.model);
  plan.gradients = here.parallel.gradients;
  plan.head_room = fit_of(*models.placed, report).head_room;
  return {std::move(plan), ""};
}

Outcome ModelEvaluator::evaluate(const Configuration& configuration) {
  const std::vector<LayerSplit>& splits = planner_.splits();
  const auto split = static_cast<std::size_t>(
      std::find(splits.begin(), splits.end(), configuration.split) - splits.begin());
  const Dealt& dealt = deal(configuration);
  if (!dealt.refused.refusal.empty()) return split == 0 ? dealt.refused : Outcome{};
  if (!dealt.layers[split]) return {};
  try {
    return simulate_plan(configuration, *dealt.layers[split]);
  } catch (const Error& error) {
    if (error.fault() == Fault::kMachine) throw;
    return {{}, error.what()};
  }
}

}  // namespace bubblescope
