// Walks from a schedule to a report.
#include "sim/predict/predict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sim/analysis/analyze.h"
#include "sim/analysis/analyze_run.h"
#include "sim/analysis/serving.h"
#include "sim/analysis/step_times.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/predict/arrivals.h"
#include "sim/predict/choose_layers.h"
#include "sim/predict/choose_lowering.h"
#include "sim/predict/find_timing.h"
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

/// The scenarios; a table's noise counts where the Config itself has none.
Scenarios choose_scenarios(const Config& config) {
  Scenarios scenarios = config.scenarios;
  const auto* const table = std::get_if<CostTable>(&config.costs);
  if (table == nullptr || !table->noise || scenarios.noise.is_random()) return scenarios;
  const Noise given = scenarios.noise;
  scenarios.noise = *table->noise;
  scenarios.noise.seed = given.seed;
  scenarios.noise.replica = given.replica;
  return scenarios;
}

/// The report by which steps are compared. Those that exceed their devices are not, so that only
/// their peaks are found.
BubbleReport analyze_fitting(const ValidSchedule& schedule, const Program& program,
                             const PredictedStep& step, LowerBound bound) {
  if (step.models.placed) {
    BubbleReport peaks = report_peaks(schedule, program, step.timeline, step.models.memory);
    if (!find_fit(*step.models.placed, peaks).fits()) return peaks;
  }
  return analyze_briefly(schedule, program, step.timeline, step.models.memory, bound);
}

/// A step that has been timed is only analyzed.
PredictedStep predict_once(const ValidSchedule& schedule, const Program& program,
                           const Config& config, std::optional<ChosenStep::Timed> timed = {}) {
  PredictedStep step;
  SimulatedRun run;
  if (timed) {
    step.models = std::move(timed->models);
    step.timing = std::move(timed->timing);
    run.timeline = std::move(timed->timeline);
  } else {
    step.models = find_models(schedule, config);
    step.timing = find_timing(program, step.models, config);
    run = simulate(program, step.timing);
  }
  if (config.detail == Detail::kFull) {
    step.notes = find_notes(schedule, step.models.memory, config);
    step.report =
        analyze_run({schedule, program, step.models.costs, step.models.memory, step.timing, run},
                    choose_scenarios(config), config.slack);
  }
  step.timeline = std::move(run.timeline);
  if (config.detail == Detail::kBrief)
    step.report = analyze_fitting(schedule, program, step, LowerBound::kSkip);
  if (config.detail == Detail::kBriefWithBound)
    step.report = analyze_fitting(schedule, program, step, LowerBound::kFind);
  return step;
}

/// Returns the Config of one data-parallel replica.
Config choose_replica(const Config& config, const CostTable& table, std::size_t replica) {
  Config one = config;
  CostTable own = table;
  own.stages = table.replicas[replica];
  own.replicas.clear();
  own.late_starts.clear();
  own.places.objects = own.places.counted_by = "/replicas/" + std::to_string(replica) + "/stages";
  one.costs = std::move(own);
  one.scenarios.noise.replica = replica;
  return one;
}

/// Keeps, for each step, the latest end of all replicas so far; this one begins `late_start` late.
void take_later(std::vector<Nanos>& ends, const std::vector<Nanos>& makespans, Nanos late_start) {
  ends.resize(makespans.size(), 0);
  for (std::size_t at = 0; at < makespans.size(); ++at)
    ends[at] = std::max(ends[at], late_start + makespans[at]);
}

struct SlowestReplica {
  PredictedStep step;
  Nanos late_start = 0;  ///< its own
};

/// Predicts every replica. The report is that of the one which ends last without noise; times under
/// noise count from its start, as its makespan does.
SlowestReplica predict_replicas(const ValidSchedule& schedule, const Program& program,
                                const Config& config, const CostTable& table) {
  std::optional<SlowestReplica> slowest;
  std::vector<Nanos> ends;  // of every step under noise
  for (std::size_t replica = 0; replica < table.replicas.size(); ++replica) {
    const Nanos late = table.late_start(replica);
    PredictedStep one = predict_once(schedule, program, choose_replica(config, table, replica));
    if (one.report.noise) take_later(ends, one.report.noise->makespans, late);
    if (!slowest ||
        late + one.report.makespan > slowest->late_start + slowest->step.report.makespan)
      slowest = SlowestReplica{std::move(one), late};
  }
  for (Nanos& end : ends) end -= slowest->late_start;
  if (!ends.empty()) slowest->step.report.noise = summarize(std::move(ends));
  return *std::move(slowest);
}

/// A late start of the slowest replica is time before its pipeline.
std::optional<JobStep> find_job_step(const BubbleReport& report, const CostTable& table,
                                     Nanos late_start) {
  if (table.replicas.empty() && table.outside_pipeline == 0) return {};
  JobStep job;
  job.replicas = std::max(1, static_cast<std::int32_t>(table.replicas.size()));
  job.outside_pipeline = table.outside_pipeline + late_start;
  const Nanos pipeline = report.noise ? std::llround(report.noise->mean) : report.makespan;
  job.step = pipeline + job.outside_pipeline;
  return job;
}

PredictedStep predict_table(const ValidSchedule& schedule, const Program& program,
                            const Config& config, const CostTable& table) {
  SlowestReplica slowest = table.replicas.empty()
                               ? SlowestReplica{predict_once(schedule, program, config)}
                               : predict_replicas(schedule, program, config, table);
  slowest.step.report.job = find_job_step(slowest.step.report, table, slowest.late_start);
  return std::move(slowest.step);
}

/// Refuses what makes another Program than this one.
void expect_own_program(const Program& program, const Config& config) {
  if (config.policy)
    throw Error("a `policy` chooses another order than that of this Program; predict the schedule");
  const bool waits = std::any_of(config.arrivals.begin(), config.arrivals.end(),
                                 [](Nanos arrival) { return arrival > 0; });
  if (waits && std::none_of(program.instructions.begin(), program.instructions.end(), is_arrival))
    throw Error("`arrivals` are not part of this Program; predict the schedule");
}

}  // namespace

PredictedStep predict_step(const ValidSchedule& schedule, const Program& program,
                           const Config& config) {
  expect_own_program(program, config);
  if (const auto* const table = std::get_if<CostTable>(&config.costs))
    return predict_table(schedule, program, config, *table);
  ChosenStep chosen = choose_and_time_layers(schedule, program, config);
  PredictedStep step = predict_once(schedule, program, chosen.config, std::move(chosen.timed));
  const auto* const model = std::get_if<ModelCosts>(&chosen.config.costs);
  if (model == nullptr || !model->may_shrink_gradients || step.report.ranks.empty()) return step;
  const std::optional<Gradients> smaller =
      choose_smaller_gradients(*step.models.placed, step.report);
  if (!smaller) return step;
  Config shrunk = chosen.config;
  std::get<ModelCosts>(shrunk.costs).on.parallel.shrink_gradients(*smaller);
  return predict_once(schedule, program, shrunk);
}

Prediction predict(ValidSchedule schedule, const Config& config) {
  schedule = apply_moves(std::move(schedule), config.moves);
  Program program = lower_or_refuse(schedule, choose_lowering(schedule, config));
  return predict(std::move(schedule), std::move(program), config);
}

namespace {

/// Predicts the order that ranks choose, and reports the noise under which they choose anew.
Prediction predict_readiness(const ValidSchedule& schedule, const Config& config) {
  Config chosen = config;
  chosen.scenarios = choose_scenarios(config);
  if (auto* const table = std::get_if<CostTable>(&chosen.costs)) table->noise.reset();
  ReadyStep ready = run_by_readiness(schedule, chosen);
  chosen.policy.reset();
  chosen.scenarios.noise = {};
  Program program = lower_or_refuse(ready.schedule, choose_lowering(ready.schedule, chosen));
  Prediction step = predict(std::move(ready.schedule), std::move(program), chosen);
  step.report.noise = std::move(ready.noise);
  if (const auto* const table = std::get_if<CostTable>(&chosen.costs))
    step.report.job = find_job_step(step.report, *table, 0);
  return step;
}

}  // namespace

Prediction predict(ValidSchedule schedule, Program program, const Config& given) {
  // Before the order or the Program changes.
  const bool changes = given.policy || !given.arrivals.empty();
  const Config config = changes ? choose_layers(schedule, program, given) : given;
  if (config.policy) return predict_readiness(schedule, config);
  if (!config.arrivals.empty())
    program = add_arrivals(std::move(program), schedule, config.arrivals);
  PredictedStep step = predict_step(schedule, program, config);
  if (!config.arrivals.empty() && schedule->forward_only)
    step.report.serving = measure_serving(schedule, program, step.timeline, config.arrivals);
  return {std::move(step), std::move(schedule), std::move(program)};
}

}  // namespace bubblescope::inline sim
