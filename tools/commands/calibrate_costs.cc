// Turns estimates into the entries of a cost table.
#include "tools/commands/calibrate_costs.h"

#include <algorithm>
#include <utility>

#include "exec/calibration/calibrate.h"
#include "exec/gpu/host/device_backend.h"
#include "exec/gpu/host/device_memory.h"
#include "sim/model/stage_kinds.h"
#include "tools/commands/calibrate_contention.h"
#include "tools/commands/calibrate_copies.h"
#include "tools/commands/calibrate_messages.h"
#include "tools/commands/step_clocks.h"

namespace bubblescope::tools {

namespace {

/// Sets the bytes of a stage's activations, and what a recomputed forward saves. Cost tables refer
/// to whole sequences.
void set_bytes(StageEntry& entry, const Schedule& schedule, const MemoryModel& memory,
               std::size_t stage) {
  const MemoryDelta& delta = memory.activation_bytes[stage];
  const Bytes slices = schedule.shape.slices;
  const Bytes saved = delta.forward * slices;
  const Bytes released = std::max<Bytes>(0, -delta.input_grad) * slices;
  entry.activation_bytes = MemoryDelta{saved, -released, released - saved};
  if (schedule.recompute_of_stage.empty()) return;
  const Recompute recompute = schedule.recompute_of_stage[stage];
  if (recompute == Recompute::kFull) entry.checkpoint = memory.checkpoint_bytes[stage] * slices;
  if (recompute == Recompute::kSelective)
    entry.selective_checkpoint = memory.checkpoint_bytes[stage] * slices;
}

std::vector<StageEntry> stage_costs(const exec::Calibration& calibration, const Schedule& schedule,
                                    const MemoryModel& memory) {
  std::vector<StageEntry> stages(calibration.ops.size());
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const Recompute recompute = schedule.recompute(static_cast<std::int32_t>(stage));
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
      if (const auto& known = calibration.ops[stage][kind])
        set_duration(stages[stage], static_cast<OpKind>(kind), recompute,
                     known->mean * schedule.shape.slices);
    const exec::UpdateEstimate& update = calibration.updates[stage];
    if (update.optimizer) stages[stage].update.optimizer = update.optimizer->mean;
    if (update.reduce_grad) stages[stage].update.reduce_grad = update.reduce_grad->mean;
    if (!memory.activation_bytes.empty()) set_bytes(stages[stage], schedule, memory, stage);
  }
  return stages;
}

/// The memory of a transformer's ops; empty if nothing is trained.
MemoryModel measured_memory(const Schedule& schedule, const RunOptions& run) {
  if (run.work != WorkKind::kTransformer) return {};
  const bool on_device = exec::find_device_backend(run.backend) != nullptr;
  return on_device ? exec::device_training_memory(schedule, run.training, run.device)
                   : exec::training_memory(schedule, run.training);
}

/// Scales all steps to their median clock, and returns it; does nothing if that is not known.
std::optional<double> bring_to_one_clock(std::vector<Measurement>& measurements,
                                         std::vector<Measurement>& wider) {
  std::vector<Measurement*> all;
  for (std::vector<Measurement>* const some : {&measurements, &wider})
    for (Measurement& each : *some) all.push_back(&each);
  const std::optional<double> sm_mhz = find_median_sm_mhz({all.begin(), all.end()});
  if (!sm_mhz) return std::nullopt;
  for (Measurement* const each : all) scale_to_clock(each->steps, each->devices, *sm_mhz);
  return sm_mhz;
}

/// Returns the stages of schedules, without contention.
std::vector<StageEntry> stages_of(const std::vector<Measurement>& measurements,
                                  const RunOptions& run) {
  const std::vector<exec::Observation> observations = collect_observations(measurements);
  const ValidSchedule& schedule = measurements[0].step.schedule;
  return stage_costs(exec::calibrate(observations, schedule->stages()), schedule,
                     measured_memory(schedule, run));
}

/// Adds the times of messages or, on devices that ranks share, those of contention.
CalibratedCosts with_messages_or_contention(CalibratedCosts costs,
                                            const std::vector<Measurement>& measurements,
                                            const CostRequest& request) {
  const RunOptions& run = request.context.run;
  if (request.contention && measurements[0].ranks_per_device > 1)
    return with_contention(std::move(costs), measurements, request.context);
  const auto& message = costs.measured.calibration.message;
  const exec::DeviceBackendDef* const backend = exec::find_device_backend(run.backend);
  if (backend == nullptr || !backend->time_messages || !message) return costs;
  const Nanos effective = message->mean;
  return with_messages(std::move(costs), {collect_observations(measurements), {}, 1, effective},
                       measurements[0].step.schedule, run);
}

}  // namespace

LowerOptions choose_calibration_lowering(const PredictInputs& inputs, const RunOptions& run,
                                         const Schedule& schedule) {
  LowerOptions options = inputs.config().lower;
  const bool trains =
      run.work == WorkKind::kTransformer && !schedule.forward_only && schedule.weights.empty();
  if (trains && options.update.optimizer == OptimizerMode::kNone)
    options.update.optimizer = OptimizerMode::kLocal;
  return options;
}

CalibratedCosts make_measured_costs(std::vector<Measurement> measurements,
                                    std::vector<Measurement> wider, const CostRequest& request) {
  const RunOptions& run = request.context.run;
  const std::optional<double> sm_mhz = bring_to_one_clock(measurements, wider);
  const std::vector<exec::Observation> observations = collect_observations(measurements);
  const ValidSchedule& schedule = measurements[0].step.schedule;
  const exec::Calibration calibration = exec::calibrate(observations, schedule->stages());
  const MemoryModel memory = measured_memory(schedule, run);
  CalibratedCosts costs;
  costs.table.sm_mhz = sm_mhz;
  costs.table.stages = stage_costs(calibration, schedule, memory);
  if (calibration.message)
    costs.table.message.latency = std::max<Nanos>(0, calibration.message->mean);
  if (calibration.op_gap) costs.table.op_gap = std::max<Nanos>(0, calibration.op_gap->mean);
  costs.measured = {measurements[0].backend, measurements[0].work, measurements[0].device,
                    calibration};
  costs.table = with_copies(std::move(costs.table), measurements[0], memory, request.context);
  costs = with_messages_or_contention(std::move(costs), measurements, request);
  if (schedule->pipelines == 1)
    costs.table.stage_kinds =
        make_stage_kinds(wider.empty() ? costs.table.stages : stages_of(wider, run));
  return costs;
}

}  // namespace bubblescope::tools
