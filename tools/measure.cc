// Running a schedule and reporting what was measured.
#include "tools/measure.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <utility>

#include "exec/device.h"
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

Execution execute_on(const Program& program, BackendRequest request, const RunOptions& run,
                     const std::function<void()>& after_step) {
  const BackendDef& def = find_backend(run.backend);
  const auto backend = def.make(std::move(request));
  const InterruptGuard guard;
  return execute(program, *backend, def.name, {run.warmup, run.steps, after_step});
}

void keep(Measurement& measurement, Execution execution) {
  for (const Timeline& timeline : execution.steps)
    measurement.makespans.push_back(makespan_of(timeline));
  measurement.breakdown = std::move(execution.breakdown);
  measurement.step.timeline =
      measurement.breakdown ? execution.steps.back() : median_step(execution.steps);
  measurement.steps = std::move(execution.steps);
}

void train(Measurement& measurement, const PredictOptions& options, const RunOptions& run) {
  const Step& step = measurement.step;
  Training training(step.schedule, step.program, run.training);
  keep(measurement, execute_on(step.program, request_of(training.work(), options, run), run,
                               [&] { training.finish_step(); }));
  measurement.peak_bytes = training.peak_bytes();
  if (measurement.breakdown) return;
  measurement.proof =
      prove(training.result(), train_serially(step.schedule, run.training, run.warmup + run.steps));
  measurement.device += "; products by " + multiplier();
}

void play(Measurement& measurement, const PredictOptions& options, const RunOptions& run) {
  const Step& step = measurement.step;
  const std::vector<Nanos> durations = price(step.program, step.models.costs);
  const Pass pass = run.work == WorkKind::kSleep ? Pass::kSleep : Pass::kSpin;
  Work work = play(step.program, durations, pass);
  keep(measurement,
       execute_on(step.program, request_of(std::move(work), options, run), run, nullptr));
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
  if (run.work == WorkKind::kTransformer)
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
