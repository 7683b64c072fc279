// Runs a schedule and reports what was measured.
#include "tools/measure.h"

#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "exec/runtime/device.h"
#include "exec/runtime/timed_work.h"
#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "tools/command.h"
#include "traces/json_string.h"

namespace bubblescope {

namespace {

std::atomic<bool> interrupted = false;

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

BackendRequest request_of(Work work, const Bench& bench) {
  BackendRequest request{std::move(work), bench.options.injections};
  request.timeout = bench.run.timeout;
  request.interrupted = &interrupted;
  return request;
}

Execution execute_on(Backend& backend, const Program& program, const RunOptions& run,
                     const std::function<void()>& after_step) {
  return execute(program, backend, find_backend(run.backend).name,
                 {run.warmup, run.steps, after_step});
}

Pass pass_of(WorkKind work) { return work == WorkKind::kSleep ? Pass::kSleep : Pass::kSpin; }

void keep(Measurement& measurement, Execution execution) {
  for (const Timeline& timeline : execution.steps)
    measurement.makespans.push_back(makespan_of(timeline));
  measurement.breakdown = std::move(execution.breakdown);
  measurement.step.timeline =
      measurement.breakdown ? execution.steps.back() : median_step(execution.steps);
  measurement.steps = std::move(execution.steps);
}

/// Verifies the training where requested, in the process that speaks.
void prove_training(Measurement& measurement, const Bench& bench, std::int32_t copies = 1) {
  const RunOptions& run = bench.run;
  if (!run.proof || !bench.processes.speaks()) return;
  const Heartbeat others_wait(bench.processes);
  Schedule whole = measurement.step.schedule;
  whole.shape.microbatches *= copies;
  measurement.proof =
      prove(measurement.trained, train_serially(whole, run.training, run.warmup + run.steps));
}

void train(Measurement& measurement, const Bench& bench) {
  const Step& step = measurement.step;
  const RunOptions& run = bench.run;
  Training training(step.schedule, step.program, run.training, bench.processes);
  BackendRequest request = request_of(training.work(), bench);
  request.cargo = training.cargo();
  const auto backend = find_backend(run.backend).make(std::move(request), step.program);
  keep(measurement, execute_on(*backend, step.program, run, [&] { training.finish_step(); }));
  measurement.device += "; products by " + multiplier();
  if (measurement.breakdown) return;
  measurement.peak_bytes = training.peak_bytes();
  measurement.trained = training.result();
  prove_training(measurement, bench);
}

void play(Measurement& measurement, const Bench& bench) {
  const Step& step = measurement.step;
  const std::vector<Nanos> durations = price(step.program, step.models.costs);
  const Pass pass = pass_of(bench.run.work);
  BackendRequest request = request_of(play(step.program, durations, pass), bench);
  request.punctual = pass == Pass::kSleep;
  const auto backend = find_backend(bench.run.backend).make(std::move(request), step.program);
  keep(measurement, execute_on(*backend, step.program, bench.run, nullptr));
}

Job start_job(const ValidSchedule& schedule, const Program& program, const CostModel& costs,
              const Bench& bench) {
  const RunOptions& run = bench.run;
  JobRequest request{schedule, program, nullptr, {}, pass_of(run.work), run.device};
  if (run.work == WorkKind::kTransformer)
    request.training = &run.training;
  else
    request.durations = price(program, costs);
  return find_backend(run.backend).start(request, request_of({}, bench));
}

/// Executes a job and monitors the devices from the end of the warm-up.
Execution execute_watched(Measurement& measurement, const Job& job, const RunOptions& run) {
  DeviceWatch watch(open_nvml(), job.buses);
  std::int32_t to_come = run.warmup;
  if (to_come == 0) watch.begin();
  Execution execution = execute_on(*job.backend, measurement.step.program, run, [&] {
    if (job.after_step) job.after_step();
    if (--to_come == 0) watch.begin();
  });
  measurement.devices = watch.finish();
  return execution;
}

/// Keeps the activity of the step that is shown.
void keep_activity(Measurement& measurement, const Job& job, const Execution& execution,
                   const RunOptions& run) {
  if (!job.activity || execution.breakdown) return;
  const Timeline& shown = median_step(execution.steps);
  measurement.activity = job.activity(run.warmup + (&shown - execution.steps.data()), shown);
}

/// The same for backends that create the work themselves.
void start(Measurement& measurement, const Bench& bench) {
  const Step& step = measurement.step;
  const RunOptions& run = bench.run;
  const Job job = start_job(step.schedule, step.program, step.models.costs, bench);
  measurement.device = job.device;
  measurement.ranks_per_device = job.ranks_per_device;
  Execution execution = execute_watched(measurement, job, run);
  keep_activity(measurement, job, execution, run);
  keep(measurement, std::move(execution));
  if (measurement.breakdown || !job.result) return;
  measurement.peak_bytes = job.peak_bytes();
  if (job.pools) measurement.pools = job.pools();
  if (job.epilogues) measurement.epilogues = job.epilogues();
  measurement.trained = job.result();
  prove_training(measurement, bench, job.copies);
}

/// A thread that does not come back from a library cannot be unwound.
[[noreturn]] void end_program(const std::string& why) {
  complain(why);
  std::_Exit(exit_status(Fault::kMachine));
}

std::string describe_device(const Processes& processes) {
  const std::string host = describe_host();
  return processes.here() ? std::to_string(processes.count()) + " processes; " + host : host;
}

}  // namespace

Session::Session(const RunOptions& run) {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t at = 0; at < kSignals.size(); ++at)
    sigaction(kSignals[at], &action, &before_[at]);
  const BackendDef& def = find_backend(run.backend);
  if (def.join)
    processes_ = def.join({run.timeout, &interrupted, end_program});
  else
    processes_ = std::make_unique<Processes>();
}

bool Session::reports() {
  if (processes_->speaks()) {
    heartbeat_.emplace(*processes_);
    return true;
  }
  processes_->shutdown();
  return false;
}

Session::~Session() {
  heartbeat_.reset();
  processes_.reset();
  for (std::size_t at = 0; at < kSignals.size(); ++at)
    sigaction(kSignals[at], &before_[at], nullptr);
}

Measurement measure(const ValidSchedule& schedule, const Program& program, const Bench& bench) {
  Measurement measurement{{schedule}};
  measurement.step.program = program;
  measurement.step.models = load_models(schedule, bench.options);
  measurement.backend = find_backend(bench.run.backend).name;
  measurement.work = to_string(bench.run.work);
  measurement.device = describe_device(bench.processes);
  if (find_backend(bench.run.backend).start)
    start(measurement, bench);
  else if (bench.run.work == WorkKind::kTransformer)
    train(measurement, bench);
  else
    play(measurement, bench);
  Step& step = measurement.step;
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  for (std::size_t rank = 0; rank < measurement.peak_bytes.size(); ++rank)
    step.report.ranks[rank].peak.bytes = measurement.peak_bytes[rank];
  return measurement;
}

std::vector<Timeline> time_program(const ValidSchedule& schedule, const Program& program,
                                   const Bench& bench) {
  const Models models = load_models(schedule, bench.options);
  const Job job = start_job(schedule, program, models.costs, bench);
  Execution execution = execute_on(*job.backend, program, bench.run, nullptr);
  if (execution.breakdown)
    throw Error(execution.breakdown->fault, "ops in company: " + execution.breakdown->message);
  return std::move(execution.steps);
}

namespace {

/// Writes the pools; empty without pools.
std::string pools_json(const std::vector<PoolUse>& pools) {
  if (pools.empty()) return "";
  std::vector<Bytes> peaks;
  std::vector<Bytes> reserved;
  for (const PoolUse& pool : pools) {
    peaks.push_back(pool.peak);
    reserved.push_back(pool.reserved);
  }
  return fmt::format(",\"pools\":{{\"peak_bytes\":[{}],\"reserved_bytes\":[{}]}}",
                     fmt::join(peaks, ","), fmt::join(reserved, ","));
}

}  // namespace

std::string json_members(const Measurement& measurement) {
  const bool knows_devices = !to_string(measurement.devices).empty();
  const char* match = !measurement.proof ? "null" : measurement.proof->matches ? "true" : "false";
  return fmt::format(
      "\"work\":{},\"device\":{},\"gradients_match\":{},\"makespans_ns\":[{}]{}{}{}{}{}",
      json_string(measurement.work), json_string(measurement.device), match,
      fmt::join(measurement.makespans, ","),
      measurement.proof ? ",\"proof\":" + json_string(to_string(*measurement.proof)) : "",
      pools_json(measurement.pools),
      measurement.epilogues.empty() ? "" : "," + epilogues_json(measurement.epilogues),
      knows_devices ? "," + device_state_json(measurement.devices) : "",
      measurement.activity ? "," + activity_json(*measurement.activity) : "");
}

std::string with_members(const std::string& report_json, const std::string& members) {
  const std::size_t end = report_json.rfind('}');
  return report_json.substr(0, end) + ",\n " + members + report_json.substr(end);
}

}  // namespace bubblescope
