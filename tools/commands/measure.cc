// Runs a schedule and reports what was measured.
#include "tools/commands/measure.h"

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "exec/runtime/device.h"
#include "exec/runtime/timed_work.h"
#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "tools/command.h"

namespace bubblescope::tools {

namespace {

std::atomic<bool> interrupted = false;

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

exec::BackendRequest make_request(exec::Work work, const RunContext& context) {
  exec::BackendRequest request{std::move(work), context.options.injections};
  request.timeout = context.run.timeout;
  request.interrupted = &interrupted;
  return request;
}

exec::Execution execute_on(exec::Backend& backend, const Program& program, const RunOptions& run,
                           const std::function<void()>& after_step) {
  return exec::execute(program, backend, exec::find_backend(run.backend).name,
                       {run.warmup, run.steps, after_step});
}

exec::WaitMode wait_mode_of(WorkKind work) {
  return work == WorkKind::kSleep ? exec::WaitMode::kSleep : exec::WaitMode::kSpin;
}

void keep(Measurement& measurement, exec::Execution execution) {
  for (const Timeline& timeline : execution.steps)
    measurement.makespans.push_back(compute_makespan(timeline));
  measurement.breakdown = std::move(execution.breakdown);
  measurement.step.timeline =
      measurement.breakdown ? execution.steps.back() : exec::median_step(execution.steps);
  measurement.steps = std::move(execution.steps);
}

/// Verifies the training where requested, in the process that speaks.
void verify_training(Measurement& measurement, const RunContext& context, std::int32_t copies = 1) {
  const RunOptions& run = context.run;
  if (!run.verification || !context.processes.is_coordinator()) return;
  const exec::Heartbeat others_wait(context.processes);
  Schedule whole = measurement.step.schedule;
  whole.shape.microbatches *= copies;
  measurement.verification = exec::verify(
      measurement.trained, exec::train_serially(whole, run.training, run.warmup + run.steps));
}

void train(Measurement& measurement, const RunContext& context) {
  const TimedStep& step = measurement.step;
  const RunOptions& run = context.run;
  exec::Training training(step.schedule, step.program, run.training, context.processes);
  exec::BackendRequest request = make_request(training.work(), context);
  request.payload_codec = training.payload_codec();
  const auto backend = exec::find_backend(run.backend).make(std::move(request), step.program);
  keep(measurement, execute_on(*backend, step.program, run, [&] { training.finish_step(); }));
  measurement.device += "; products by " + exec::gemm_library();
  if (measurement.breakdown) return;
  measurement.peak_bytes = training.peak_bytes();
  measurement.trained = training.result();
  verify_training(measurement, context);
}

void play(Measurement& measurement, const RunContext& context) {
  const TimedStep& step = measurement.step;
  const std::vector<Nanos> durations = price(step.program, step.models.costs);
  const exec::WaitMode wait_mode = wait_mode_of(context.run.work);
  exec::BackendRequest request = make_request(play(step.program, durations, wait_mode), context);
  request.high_priority = wait_mode == exec::WaitMode::kSleep;
  const auto backend =
      exec::find_backend(context.run.backend).make(std::move(request), step.program);
  keep(measurement, execute_on(*backend, step.program, context.run, nullptr));
}

exec::Job start_job(const ValidSchedule& schedule, const Program& program, const CostModel& costs,
                    const RunContext& context) {
  const RunOptions& run = context.run;
  exec::JobRequest request{schedule, program, nullptr, {}, wait_mode_of(run.work), run.device};
  if (run.work == WorkKind::kTransformer)
    request.training = &run.training;
  else
    request.durations = price(program, costs);
  return exec::find_backend(run.backend).start(request, make_request({}, context));
}

/// Executes a job and monitors the devices from the end of the warm-up.
exec::Execution execute_monitored(Measurement& measurement, const exec::Job& job,
                                  const RunOptions& run) {
  exec::DeviceMonitor watch(exec::open_nvml(), job.buses);
  std::int32_t warmup_left = run.warmup;
  if (warmup_left == 0) watch.begin();
  exec::Execution execution = execute_on(*job.backend, measurement.step.program, run, [&] {
    if (job.after_step) job.after_step();
    if (--warmup_left == 0) watch.begin();
  });
  measurement.devices = watch.finish();
  return execution;
}

/// Keeps the activity of the step that is shown.
void record_activity(Measurement& measurement, const exec::Job& job,
                     const exec::Execution& execution, const RunOptions& run) {
  if (!job.activity || execution.breakdown) return;
  const Timeline& shown = exec::median_step(execution.steps);
  measurement.activity = job.activity(run.warmup + (&shown - execution.steps.data()), shown);
}

/// The same for backends that create the work themselves.
void start(Measurement& measurement, const RunContext& context) {
  const TimedStep& step = measurement.step;
  const RunOptions& run = context.run;
  const exec::Job job = start_job(step.schedule, step.program, step.models.costs, context);
  measurement.device = job.device;
  measurement.ranks_per_device = job.ranks_per_device;
  exec::Execution execution = execute_monitored(measurement, job, run);
  record_activity(measurement, job, execution, run);
  keep(measurement, std::move(execution));
  if (measurement.breakdown || !job.result) return;
  measurement.peak_bytes = job.peak_bytes();
  if (job.pools) measurement.pools = job.pools();
  if (job.epilogues) measurement.epilogues = job.epilogues();
  measurement.trained = job.result();
  verify_training(measurement, context, job.copies);
}

/// A thread that does not come back from a library cannot be unwound.
[[noreturn]] void end_program(const std::string& why) {
  print_error(why);
  std::_Exit(exit_status(Fault::kMachine));
}

std::string describe_device(const exec::Processes& processes) {
  const std::string host = exec::describe_host();
  return processes.here() ? std::to_string(processes.count()) + " processes; " + host : host;
}

}  // namespace

BackendSession::BackendSession(const RunOptions& run) {
  interrupted = false;
  struct sigaction action {};
  action.sa_handler = [](int) { interrupted = true; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (std::size_t at = 0; at < kSignals.size(); ++at)
    sigaction(kSignals[at], &action, &before_[at]);
  const exec::BackendDef& def = exec::find_backend(run.backend);
  if (def.join)
    processes_ = def.join({run.timeout, &interrupted, end_program});
  else
    processes_ = std::make_unique<exec::Processes>();
}

bool BackendSession::reports() {
  if (processes_->is_coordinator()) {
    heartbeat_.emplace(*processes_);
    return true;
  }
  processes_->shutdown();
  return false;
}

BackendSession::~BackendSession() {
  heartbeat_.reset();
  processes_.reset();
  for (std::size_t at = 0; at < kSignals.size(); ++at)
    sigaction(kSignals[at], &before_[at], nullptr);
}

Measurement measure(const ValidSchedule& schedule, const Program& program,
                    const RunContext& context) {
  Measurement measurement{{schedule}};
  measurement.step.program = program;
  measurement.step.models = load_models(schedule, context.options);
  measurement.backend = exec::find_backend(context.run.backend).name;
  measurement.work = to_string(context.run.work);
  measurement.device = describe_device(context.processes);
  if (exec::find_backend(context.run.backend).start)
    start(measurement, context);
  else if (context.run.work == WorkKind::kTransformer)
    train(measurement, context);
  else
    play(measurement, context);
  TimedStep& step = measurement.step;
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  for (std::size_t rank = 0; rank < measurement.peak_bytes.size(); ++rank)
    step.report.ranks[rank].peak.bytes = measurement.peak_bytes[rank];
  return measurement;
}

std::vector<Timeline> time_program(const ValidSchedule& schedule, const Program& program,
                                   const RunContext& context) {
  const Models models = load_models(schedule, context.options);
  const exec::Job job = start_job(schedule, program, models.costs, context);
  exec::Execution execution = execute_on(*job.backend, program, context.run, nullptr);
  if (execution.breakdown)
    throw Error(execution.breakdown->fault,
                "ops under contention: " + execution.breakdown->message);
  return std::move(execution.steps);
}

}  // namespace bubblescope::tools
