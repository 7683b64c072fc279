// Running a schedule and reporting what was measured.
#include "tools/measure.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <utility>

#include "exec/device.h"
#include "exec/job.h"
#include "exec/timed_work.h"
#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "traces/json_string.h"

namespace bubblescope {

namespace {

std::atomic<bool> interrupted = false;

/// While it lives, the first Ctrl-C is heard by the executor; a second one ends the program.
class InterruptGuard {
 public:
  InterruptGuard() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

BackendRequest request_of(Work work, const PredictOptions& options, const RunOptions& run) {
  BackendRequest request{std::move(work), options.injections};
  request.timeout = run.timeout;
  request.interrupted = &interrupted;
  return request;
}

Execution execute_on(Backend& backend, const Program& program, const RunOptions& run,
                     const std::function<void()>& after_step) {
  const InterruptGuard guard;
  return execute(program, backend, find_backend(run.backend).name,
                 {run.warmup, run.steps, after_step});
}

Pass pass_of(WorkKind work) { return work == WorkKind::kSleep ? Pass::kSleep : Pass::kSpin; }

void keep(Measurement& measurement, Execution execution) {
  for (const Timeline& timeline : execution.steps) {
    const StepBounds bounds = step_bounds(timeline);
    measurement.makespans.push_back(bounds.end - bounds.start);
  }
  measurement.breakdown = std::move(execution.breakdown);
  measurement.step.timeline =
      measurement.breakdown ? execution.steps.back() : median_step(execution.steps);
  measurement.steps = std::move(execution.steps);
}

/// Where it was asked for.
void prove_training(Measurement& measurement, const TrainingResult& result, const RunOptions& run) {
  if (measurement.breakdown || !run.proof) return;
  const std::int32_t steps = run.warmup + run.steps;
  const double tolerance =
      run.device.precision == Precision::kBfloat16 ? kBfloat16Tolerance : kProofTolerance;
  measurement.proof =
      prove(result, train_serially(measurement.step.schedule, run.training, steps), tolerance);
}

void train(Measurement& measurement, const PredictOptions& options, const RunOptions& run) {
  const Step& step = measurement.step;
  Training training(step.schedule, step.program, run.training);
  const auto backend = find_backend(run.backend).make(request_of(training.work(), options, run));
  keep(measurement, execute_on(*backend, step.program, run, [&] { training.finish_step(); }));
  measurement.peak_bytes = training.peak_bytes();
  prove_training(measurement, training.result(), run);
  measurement.device += "; products by " + multiplier();
}

void play(Measurement& measurement, const PredictOptions& options, const RunOptions& run) {
  const Step& step = measurement.step;
  const std::vector<Nanos> durations = price(step.program, step.models.costs);
  Work work = play(step.program, durations, pass_of(run.work));
  const auto backend = find_backend(run.backend).make(request_of(std::move(work), options, run));
  keep(measurement, execute_on(*backend, step.program, run, nullptr));
}

/// The same for backends that make the work themselves.
void start(Measurement& measurement, const PredictOptions& options, const RunOptions& run) {
  const Step& step = measurement.step;
  JobRequest request{step.schedule, step.program, nullptr, {}, pass_of(run.work), run.device};
  if (run.work == WorkKind::kTransformer)
    request.training = &run.training;
  else
    request.durations = price(step.program, step.models.costs);
  const Job job = find_backend(run.backend).start(request, request_of({}, options, run));
  measurement.device = job.device;
  keep(measurement, execute_on(*job.backend, step.program, run, job.after_step));
  if (job.peak_bytes) measurement.peak_bytes = job.peak_bytes();
  if (job.result && !measurement.breakdown) prove_training(measurement, job.result(), run);
}

}  // namespace

Measurement measure(const Schedule& schedule, const Program& program, const PredictOptions& options,
                    const RunOptions& run) {
  Measurement measurement;
  measurement.step.schedule = schedule;
  measurement.step.program = program;
  measurement.step.models = load_models(schedule, options);
  measurement.backend = find_backend(run.backend).name;
  measurement.work = to_string(run.work);
  measurement.device = describe_host();
  if (find_backend(run.backend).start)
    start(measurement, options, run);
  else if (run.work == WorkKind::kTransformer)
    train(measurement, options, run);
  else
    play(measurement, options, run);
  Step& step = measurement.step;
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  for (std::size_t rank = 0; rank < measurement.peak_bytes.size(); ++rank)
    step.report.ranks[rank].peak.bytes = measurement.peak_bytes[rank];
  return measurement;
}

std::string json_members(const Measurement& measurement) {
  const char* match = !measurement.proof ? "null" : measurement.proof->matches ? "true" : "false";
  return fmt::format(
      "\"work\":{},\"device\":{},\"gradients_match\":{},\"makespans_ns\":[{}]{}",
      json_string(measurement.work), json_string(measurement.device), match,
      fmt::join(measurement.makespans, ","),
      measurement.proof ? ",\"proof\":" + json_string(to_string(*measurement.proof)) : "");
}

std::string with_members(const std::string& report_json, const std::string& members) {
  const std::size_t end = report_json.rfind('}');
  return report_json.substr(0, end) + ",\n " + members + report_json.substr(end);
}

}  // namespace bubblescope
