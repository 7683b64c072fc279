// Runs a schedule and reports what was measured.
#include "tools/commands/measure.h"

#include <signal.h>

#include <cstdlib>
#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "tools/command.h"
#include "tools/commands/measured_job.h"
#include "tools/errors.h"

namespace bubblescope::tools {

namespace {

/// A thread that does not come back from a library cannot be unwound.
[[noreturn]] void end_program(const std::string& why) {
  print_error(why);
  std::_Exit(exit_status(Fault::kMachine));
}

}  // namespace

BackendSession::BackendSession(const RunOptions& run)
    : catcher_({SIGINT, SIGTERM}, IgnoredSignals::kAreCaught) {
  const exec::BackendDef& def = exec::find_backend(run.backend);
  if (def.join)
    processes_ = def.join({run.timeout, &interrupt_note(), end_program});
  else
    processes_ = std::make_unique<exec::Processes>();
}

bool BackendSession::start_reporting_or_wait() {
  if (processes_->is_coordinator()) {
    heartbeat_.emplace(*processes_);
    return true;
  }
  processes_->shutdown();
  return false;
}

exec::WaitMode wait_mode_of(WorkKind work) {
  return work == WorkKind::kSleep ? exec::WaitMode::kSleep : exec::WaitMode::kSpin;
}

exec::BackendRequest make_backend_request(exec::Work work, const RunContext& context) {
  exec::BackendRequest request{std::move(work), context.inputs.config().injections};
  request.limits = {context.run.timeout, &interrupt_note()};
  return request;
}

exec::Job start_job(const ValidSchedule& schedule, const Program& program, const CostModel& costs,
                    const RunContext& context) {
  const RunOptions& run = context.run;
  exec::JobRequest request{schedule, program, nullptr, {}, wait_mode_of(run.work), run.device};
  if (run.work == WorkKind::kTransformer)
    request.training = &run.training;
  else
    request.durations = price(program, costs);
  const exec::DeviceBackendDef& backend = *exec::find_device_backend(run.backend);
  return backend.start(request, make_backend_request({}, context));
}

Measurement measure(const ValidSchedule& schedule, const Program& program,
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
  report_step(measurement, context.inputs.config().policy);
  if (checkpoints) measurement.checkpoints = checkpoints->report();
  return measurement;
}

std::string advise_without_graph(const exec::Job& job) {
  const bool failed = job.failed_as_graph && job.failed_as_graph();
  return failed ? "; omit `graph` to launch every kernel of a step alone" : "";
}

TimedSteps time_program(const ValidSchedule& schedule, const Program& program,
                        const RunContext& context) {
  const Models models = load_models(schedule, context.inputs);
  const exec::Job job = start_job(schedule, program, models.costs, context);
  exec::DeviceMonitor monitor(exec::open_nvml(), job.buses);
  exec::ExecuteOptions options{context.run.warmup, context.run.steps, {}};
  options.begin_measured = [&monitor] { monitor.begin_step(); };
  options.end_measured = [&monitor] { monitor.end_step(); };
  exec::Execution execution =
      exec::execute(program, *job.backend, exec::find_backend(context.run.backend).name, options);
  if (execution.breakdown)
    throw Error(
        execution.breakdown->fault,
        "ops under contention: " + execution.breakdown->message + advise_without_graph(job));
  return {std::move(execution.steps), monitor.finish()};
}

}  // namespace bubblescope::tools
