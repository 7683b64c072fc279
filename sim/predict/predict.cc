// Walks from a schedule to a report.
#include "sim/predict/predict.h"

#include <optional>
#include <utility>
#include <variant>

#include "sim/analysis/analyze_run.h"
#include "sim/analysis/serving.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/predict/arrivals.h"
#include "sim/predict/model_fit.h"
#include "sim/predict/moves.h"
#include "sim/predict/readiness.h"

namespace bubblescope::inline sim {

Program lower_or_refuse(const ValidSchedule& schedule, const LowerOptions& options) {
  std::variant<Program, Deadlock> lowered = lower(schedule, options);
  if (const auto* deadlock = std::get_if<Deadlock>(&lowered))
    throw Error(Fault::kProblem, schedule->name + " deadlocks: " + to_string(*deadlock));
  return std::get<Program>(std::move(lowered));
}

namespace {

Timing find_timing(const Program& program, const Models& models, const Config& config) {
  std::vector<Nanos> durations = inject(config.injections, program, price(program, models.costs));
  durations = price_arrivals(program, std::move(durations), config.arrivals);
  return make_timing(program, apply_slow_ranks(program, std::move(durations), config.slow_ranks),
                     models.cluster, models.contention);
}

Prediction predict_once(ValidSchedule schedule, Program program, const Config& config) {
  if (!config.arrivals.empty())
    program = add_arrivals(std::move(program), schedule, config.arrivals);
  Prediction step{std::move(schedule), std::move(program)};
  step.models = find_models(step.schedule, config);
  step.notes = find_cost_notes(step.schedule, config);
  step.timing = find_timing(step.program, step.models, config);
  SimulatedRun run = simulate(step.program, step.timing);
  step.report = analyze_run(
      {step.schedule, step.program, step.models.costs, step.models.memory, step.timing, run},
      config.scenarios);
  if (!config.arrivals.empty() && step.schedule->forward_only)
    step.report.serving =
        measure_serving(step.schedule, step.program, run.timeline, config.arrivals);
  step.timeline = std::move(run.timeline);
  for (const Note note : find_memory_notes(step.models.memory, config)) step.notes.push_back(note);
  return step;
}

}  // namespace

Prediction predict(ValidSchedule schedule, const Config& config) {
  schedule = apply_moves(std::move(schedule), config.moves);
  Program program = lower_or_refuse(schedule, choose_lowering(schedule, config));
  return predict(std::move(schedule), std::move(program), config);
}

namespace {

/// Predicts the order that ranks choose, and reports the noise under which they choose anew.
Prediction predict_readiness(const ValidSchedule& schedule, const Config& config) {
  ReadyStep ready = run_by_readiness(schedule, config);
  Config chosen = config;
  chosen.policy.reset();
  chosen.scenarios.noise = {};
  Program program = lower_or_refuse(ready.schedule, choose_lowering(ready.schedule, chosen));
  Prediction step = predict(std::move(ready.schedule), std::move(program), chosen);
  step.report.noise = std::move(ready.noise);
  return step;
}

}  // namespace

Prediction predict(ValidSchedule schedule, Program program, const Config& config) {
  if (config.policy) return predict_readiness(schedule, config);
  Prediction step = predict_once(std::move(schedule), std::move(program), config);
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model == nullptr || !model->may_shrink_gradients) return step;
  const std::optional<Gradients> smaller =
      choose_smaller_gradients(*step.models.placed, step.report);
  if (!smaller) return step;
  Config shrunk = config;
  std::get<ModelCosts>(shrunk.costs).on.parallel.gradients = *smaller;
  return predict_once(std::move(step.schedule), std::move(step.program), shrunk);
}

}  // namespace bubblescope::inline sim
