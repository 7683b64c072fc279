// Configuration -> layers of every stage -> costs -> Timeline -> BubbleReport -> Plan.
#include "tools/model_evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/bytes_text.h"
#include "sim/ir/lower.h"
#include "tools/model_costs.h"
#include "tools/predict.h"
#include "traces/megatron_layout.h"

namespace bubblescope {

namespace {

/// `plan` with what is said of memory that does not suffice.
Outcome too_full(std::optional<Plan> plan, const char* what, Bytes needed, Bytes usable) {
  return {std::move(plan), fmt::format("{} {} of {}", what, bytes_text(needed), bytes_text(usable)),
          static_cast<double>(needed) / static_cast<double>(usable) - 1};
}

/// The embedding is on the first stage, the head and what predicts more tokens on the last.
std::string layout_text(const LayerCounts& layers, const Transformer& model) {
  LayerLayout layout;
  for (const std::int64_t count : layers)
    layout.push_back({0, static_cast<std::int32_t>(count), 0, 0});
  layout.front().embeddings = 1;
  layout.back().predictions = static_cast<std::int32_t>(model.predictions);
  layout.back().losses = 1;
  return to_string(layout);
}

/// But for the split.
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
  fitting.model = {};  // whose costs before the order are those of this configuration
  ScheduleRequest request = request_of(def, fitting);
  if (def.reads_costs) request.stage_costs = unordered.costs;
  ordered_.reset();
  Schedule schedule = build_schedule(def, std::move(request));
  std::variant<Program, Deadlock> program = lower(schedule, lowering_of(schedule, options));
  return ordered_.emplace(Ordered{configuration.schedule, configuration.shape, std::move(schedule),
                                  std::move(program)});
}

const ModelEvaluator::Dealt& ModelEvaluator::deal(const Configuration& configuration) {
  if (dealt_ && are_alike(dealt_->first, configuration)) return *dealt_;
  dealt_.emplace().first = configuration;
  const std::vector<LayerSplit>& splits = planner_.splits();
  dealt_->layers.resize(splits.size());
  try {
    const ModelOnDevices here = planner_.on(configuration);
    const ModelStep unordered = model_step(here, configuration.shape);
    if (const Bytes least = least_bytes(unordered); least > here.usable_memory()) {
      dealt_->refused =
          too_full({}, "states and one micro-batch take", least, here.usable_memory());
      return *dealt_;
    }
    const Ordered& ordered = order(configuration, unordered);
    if (const auto* deadlock = std::get_if<Deadlock>(&ordered.program)) {
      dealt_->refused.refusal = "deadlock: " + to_string(*deadlock);
      return *dealt_;
    }
    dealt_->layers = LayerDealer(here, ordered.schedule).worth_trying(splits);
    const bool none = std::none_of(dealt_->layers.begin(), dealt_->layers.end(),
                                   [](const auto& layers) { return layers.has_value(); });
    if (none)
      dealt_->refused.refusal = fmt::format(
          "{} layers cannot be dealt to {} stages by --split {}", here.model.layers,
          ordered.schedule.stages_per_pipeline(), name_of(kLayerSplits, splits.front()));
  } catch (const Error& error) {
    if (error.fault() == Fault::kMachine) throw;
    dealt_->refused.refusal = error.what();
  }
  return *dealt_;
}

/// What a model adds to a plan: how well the devices are used.
Plan ModelEvaluator::with_rates(Plan plan, const ModelOnDevices& here) const {
  const double seconds = static_cast<double>(plan.step) / 1e9;
  const auto samples = static_cast<double>(plan.configuration.samples());
  const std::int64_t sequence = here.parallel.sequence;
  const double devices = static_cast<double>(here.parallel.tensor) * here.parallel.context *
                         plan.configuration.shape.ranks * here.parallel.data;
  plan.tokens_per_second = samples * static_cast<double>(sequence) / seconds;
  plan.mfu = model_flops_per_sample(here.model, sequence, here.assumptions.causal) * samples /
             (seconds * devices * here.gpu.peak_flops);
  return plan;
}

Outcome ModelEvaluator::simulate_plan(const Configuration& configuration,
                                      const LayerCounts& layers) const {
  const Schedule& schedule = ordered_->schedule;
  const auto& program = std::get<Program>(ordered_->program);
  ModelOnDevices here = planner_.on(configuration);
  here.parallel.layers_of_stage = layers;
  const Models models = placed_models(
      here, schedule, uniform_memory(schedule.shape, planner_.options_of(configuration).memory));
  const Timeline timeline = simulate(program, price(program, models.costs));
  const BubbleReport report = analyze_briefly(schedule, program, timeline, models.memory);
  Plan plan = with_rates(summarize(configuration, report), here);
  plan.layout = layout_text(layers, here.model);
  const Bytes peak = plan.peak_bytes.value_or(0);
  if (peak > here.usable_memory())
    return too_full(std::move(plan), "the fullest rank needs", peak, here.usable_memory());
  const Problems over = over_cap(peaks_of(report), models.memory);
  return {std::move(plan), over.empty() ? "" : over[0].message};
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
