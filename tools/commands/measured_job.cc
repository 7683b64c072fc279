// Makes the work of a schedule, runs its steps and collects what they left.
#include "tools/commands/measured_job.h"

#include <utility>

#include "exec/gpu/host/device_backend.h"
#include "exec/runtime/host.h"
#include "exec/runtime/timed_work.h"
#include "sim/analysis/analyze.h"
#include "sim/analysis/idle.h"
#include "sim/ir/counted.h"
#include "sim/ir/units.h"
#include "tools/commands/chosen_orders.h"
#include "tools/flags/field_names.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

std::string describe_device(const exec::Processes& processes) {
  const std::string host = exec::describe_host();
  return processes.here() ? counted(processes.count(), "process") + "; " + host : host;
}

/// The durations are not copied.
std::unique_ptr<exec::Backend> make_player(const TimedStep& step,
                                           const std::vector<Nanos>& durations,
                                           const RunContext& context) {
  const exec::WaitMode wait_mode = wait_mode_of(context.run.work);
  exec::BackendRequest request =
      make_backend_request(exec::play(step.program, durations, wait_mode), context);
  request.high_priority = wait_mode == exec::WaitMode::kSleep;
  request.policy = make_policy(step, durations, step.models.memory, context);
  return exec::find_backend(context.run.backend).make(std::move(request), step.program);
}

}  // namespace

MeasuredJob::MeasuredJob(const ValidSchedule& schedule, const Program& program,
                         const RunContext& context)
    : context_(context), measurement_{{schedule}} {
  expect_policy_runs(schedule, context);
  const exec::BackendDef& def = exec::find_backend(context.run.backend);
  TimedStep& step = measurement_.step;
  step.program = program;
  step.models = load_models(schedule, context.inputs);
  measurement_.backend = def.name;
  measurement_.work = to_string(context.run.work);
  measurement_.device = describe_device(context.processes);
  std::function<void()> after_step;
  if (exec::find_device_backend(context.run.backend) != nullptr) {
    job_.emplace(start_job(step.schedule, step.program, step.models.costs, context));
    measurement_.device = job_->device;
    measurement_.ranks_per_device = job_->ranks_per_device;
    monitor_.emplace(exec::open_nvml(), job_->buses);
    after_step = job_->after_step;
    resumable_ = job_->resumable;
  } else if (context.run.work == WorkKind::kTransformer) {
    training_ = std::make_unique<exec::Training>(step.schedule, step.program, context.run.training,
                                                 context.processes);
    resumable_ = training_->stages().resumable();
    exec::BackendRequest request = make_backend_request(training_->work(), context);
    request.payload_codec = training_->payload_codec();
    request.policy = make_policy(step, price(step.program, step.models.costs),
                                 exec::training_memory(schedule, context.run.training), context);
    own_backend_ = def.make(std::move(request), step.program);
    measurement_.device += "; GEMMs by " + exec::gemm_library();
    after_step = [this] { training_->finish_step(); };
  } else {
    if (step.models.costs.op_gap > 0)
      print_message(
          "bubblescope: op_gap {} is not played: between two ops the backend takes its "
          "own time\n",
          to_text(step.models.costs.op_gap));
    durations_ = price(step.program, step.models.costs);
    own_backend_ = make_player(step, durations_, context);
  }
  series_.emplace(step.program, job_ ? *job_->backend : *own_backend_, def.name,
                  std::move(after_step));
}

MeasuredJob::~MeasuredJob() = default;

bool MeasuredJob::run_step(bool is_measured) {
  ++(is_measured ? measured_ : warmups_);
  if (is_measured && monitor_) monitor_->begin_step();
  const bool runs = series_->run(is_measured);
  if (is_measured && monitor_) monitor_->end_step();
  return runs;
}

exec::TrainingIdentity MeasuredJob::identity() const {
  const TimedStep& step = measurement_.step;
  exec::TrainingIdentity identity = exec::identify_training(
      step.schedule, step.program, context_.run.training, context_.processes);
  identity.insert(identity.end(), resumable_->computed_by.begin(), resumable_->computed_by.end());
  return identity;
}

/// The activity is that of the step that is shown.
exec::Execution MeasuredJob::take_steps() {
  if (monitor_) measurement_.devices = monitor_->finish();
  const exec::Execution& execution = series_->execution();
  if (job_ && job_->activity && !execution.breakdown) {
    const Timeline& shown = exec::median_step(execution.steps);
    measurement_.activity = job_->activity(warmups_ + (&shown - execution.steps.data()), shown);
  }
  return std::move(*series_).take();
}

void MeasuredJob::verify(exec::SerialReferences* references, std::int32_t replicas) {
  if (references == nullptr || !context_.run.verification || !context_.processes.is_coordinator())
    return;
  const exec::Heartbeat others_wait(context_.processes);
  Schedule whole = measurement_.step.schedule;
  whole.shape.microbatches *= replicas;
  const exec::TrainingOptions& options = context_.run.training;
  measurement_.verification =
      exec::verify(measurement_.trained, references->find(whole, options, steps_trained()),
                   [&] { return exec::train_disturbed(whole, options, steps_trained()); });
}

/// Weights are downloaded only if someone needs them.
void MeasuredJob::collect_weights(exec::SerialReferences* references) {
  if (training_) {
    measurement_.trained = training_->stages().result();
    return verify(references, 1);
  }
  if (!job_ || !job_->result) return;
  const bool verifies = references != nullptr && context_.run.verification;
  if (!verifies && !context_.run.keeps_weights) return;
  measurement_.trained = job_->result();
  verify(references, job_->replicas);
}

void MeasuredJob::fill_in(Measurement& measurement, exec::Execution execution) const {
  for (const Timeline& timeline : execution.steps)
    measurement.makespans.push_back(compute_makespan(timeline));
  measurement.breakdown = std::move(execution.breakdown);
  TimedStep& step = measurement.step;
  step.timeline =
      measurement.breakdown ? execution.steps.back() : exec::median_step(execution.steps);
  measurement.steps = std::move(execution.steps);
  if (measurement.breakdown) return;
  if (training_) measurement.peak_bytes = training_->stages().peak_bytes();
  if (job_ && job_->peak_bytes) measurement.peak_bytes = job_->peak_bytes();
  if (job_ && job_->pools) measurement.pools = job_->pools();
  if (job_ && job_->epilogues) measurement.epilogues = job_->epilogues();
}

Measurement MeasuredJob::report_so_far() const {
  Measurement so_far = measurement_;
  fill_in(so_far, series_->execution());
  report_step(so_far, context_.inputs.config().policy);
  return so_far;
}

Measurement MeasuredJob::finish(exec::SerialReferences* references) && {
  exec::Execution execution = take_steps();
  if (execution.breakdown) {
    std::string& message = execution.breakdown->message;
    if (job_) message += advise_without_graph(*job_);
    message = execution.steps.back().breakdown = name_flags(message);
  }
  fill_in(measurement_, std::move(execution));
  if (!measurement_.breakdown) collect_weights(references);
  series_.reset();
  own_backend_.reset();
  job_.reset();
  training_.reset();  // like the others, it refers to the Program
  return std::move(measurement_);
}

void report_step(Measurement& measurement, std::optional<ReadyPriority> policy) {
  if (policy) take_chosen_order(measurement, *policy);
  TimedStep& step = measurement.step;
  step.report = analyze(step.schedule, step.program, step.timeline, step.models.memory);
  for (std::size_t rank = 0; rank < measurement.peak_bytes.size(); ++rank)
    step.report.ranks[rank].peak.bytes = measurement.peak_bytes[rank];
}

}  // namespace bubblescope::tools
