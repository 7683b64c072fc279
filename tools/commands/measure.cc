// Runs a schedule and reports what was measured.
#include "tools/commands/measure.h"

#include <signal.h>

#include <atomic>
#include <cstdlib>
#include <utility>

#include "exec/gpu/host/gpu_environment.h"
#include "tools/command.h"
#include "tools/commands/measured_job.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

std::atomic<bool> interrupted = false;

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

/// A thread that does not come back from a library cannot be unwound.
[[noreturn]] void end_program(const std::string& why) {
  print_error(why);
  std::_Exit(exit_status(Fault::kMachine));
}

/// A graph has no ops at which faults could be injected or kernels assigned, and tools that make
/// every launch wait need launches. Steps of few kernels gain nothing by it.
bool uses_graph(const RunContext& context) {
  const RunOptions& run = context.run;
  if (run.device.graph && run.no_graph)
    throw Error("--graph and --no-graph exclude each other; give one of them");
  if (run.device.graph || run.no_graph) return run.device.graph;
  return exec::find_backend(run.backend).name == "cuda" && run.work == WorkKind::kTransformer &&
         context.options.injections.empty() && !run.device.activity &&
         exec::find_blocking_tool().empty();
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

exec::WaitMode wait_mode_of(WorkKind work) {
  return work == WorkKind::kSleep ? exec::WaitMode::kSleep : exec::WaitMode::kSpin;
}

exec::BackendRequest make_backend_request(exec::Work work, const RunContext& context) {
  exec::BackendRequest request{std::move(work), context.options.injections};
  request.timeout = context.run.timeout;
  request.interrupted = &interrupted;
  return request;
}

exec::Job start_job(const ValidSchedule& schedule, const Program& program, const CostModel& costs,
                    const RunContext& context) {
  const RunOptions& run = context.run;
  exec::JobRequest request{schedule, program, nullptr, {}, wait_mode_of(run.work), run.device};
  request.device.graph = uses_graph(context);
  if (run.work == WorkKind::kTransformer)
    request.training = &run.training;
  else
    request.durations = price(program, costs);
  return exec::find_backend(run.backend).start(request, make_backend_request({}, context));
}

namespace {

/// Says that a run begins again, and returns its options.
RunOptions repeat_without_graph(const RunOptions& run, const std::string& failure) {
  print_message(
      "bubblescope: steps cannot be graphs here, so the run begins again without them: {}\n",
      failure);
  RunOptions plain = run;
  plain.no_graph = true;
  return plain;
}

}  // namespace

std::optional<RunOptions> without_graph(const RunOptions& run, const Measurement& measurement) {
  // A run that saves checkpoints cannot begin again in the same folder.
  if (!measurement.failed_as_graph || run.device.graph || !run.checkpoints.folder.empty())
    return std::nullopt;
  return repeat_without_graph(run, measurement.breakdown->message);
}

namespace {

Measurement measure_once(const ValidSchedule& schedule, const Program& program,
                         const RunContext& context) {
  MeasuredJob job(schedule, program, context);
  exec::SerialReferences references;
  const std::int32_t total = context.run.warmup + context.run.steps;
  std::optional<Checkpoints> checkpoints;
  if (!context.run.checkpoints.folder.empty())
    checkpoints.emplace(context.run.checkpoints, job.identity(), context.processes);
  const std::int32_t begin = checkpoints ? checkpoints->begin(job.resumable(), total) : 0;
  for (std::int32_t step = begin; step < total; ++step) {
    const bool is_last = step + 1 == total;  // measured even if a resumed run has only warmed up
    if (!job.run_step(step - begin >= context.run.warmup || is_last)) break;
    if (checkpoints) checkpoints->save_if_due(job.resumable());
  }
  Measurement measurement = std::move(job).finish(&references);
  if (checkpoints) measurement.checkpoints = checkpoints->report();
  return measurement;
}

}  // namespace

Measurement measure(const ValidSchedule& schedule, const Program& program,
                    const RunContext& context) {
  Measurement measurement = measure_once(schedule, program, context);
  if (const std::optional<RunOptions> plain = without_graph(context.run, measurement))
    return measure_once(schedule, program, {context.options, *plain, context.processes});
  return measurement;
}

namespace {

/// The steps of a Program, and how the last one broke down if it did.
struct TimedRun {
  TimedSteps timed;
  std::optional<exec::Breakdown> breakdown;
  bool failed_as_graph = false;
};

TimedRun time_once(const ValidSchedule& schedule, const Program& program,
                   const RunContext& context) {
  const Models models = load_models(schedule, context.options);
  const exec::Job job = start_job(schedule, program, models.costs, context);
  exec::DeviceMonitor monitor(exec::open_nvml(), job.buses);
  exec::StepSeries series(program, *job.backend, exec::find_backend(context.run.backend).name, {});
  for (std::int32_t step = -context.run.warmup; step < context.run.steps; ++step) {
    if (step >= 0) monitor.begin_step();
    const bool runs = series.run(step >= 0);
    if (step >= 0) monitor.end_step();
    if (!runs) break;
  }
  exec::Execution execution = std::move(series).take();
  return {{std::move(execution.steps), monitor.finish()},
          std::move(execution.breakdown),
          execution.breakdown && job.failed_as_graph && job.failed_as_graph()};
}

}  // namespace

TimedSteps time_program(const ValidSchedule& schedule, const Program& program,
                        const RunContext& context) {
  TimedRun run = time_once(schedule, program, context);
  if (run.failed_as_graph && !context.run.device.graph) {
    const RunOptions plain = repeat_without_graph(context.run, run.breakdown->message);
    run = time_once(schedule, program, {context.options, plain, context.processes});
  }
  if (run.breakdown)
    throw Error(run.breakdown->fault, "ops under contention: " + run.breakdown->message);
  return std::move(run.timed);
}

}  // namespace bubblescope::tools
