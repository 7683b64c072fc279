// calibrate: measures the costs of ops and messages, and writes them as a cost file.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "exec/calibration/calibrate.h"
#include "tools/commands/calibrate_contention.h"
#include "tools/commands/calibrate_copies.h"
#include "tools/commands/calibrate_messages.h"
#include "tools/commands/exports.h"
#include "tools/commands/measure.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/words.h"
#include "tools/inputs/config.h"
#include "tools/print.h"
#include "traces/costs/cost_file_writer.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

namespace {

constexpr const char* kCalibrateExample =
    "example: measure two stages, then judge the prediction of another shape\n"
    "  bubblescope calibrate --backend cpu --work transformer --pp 2 -m 16 -o costs.json\n"
    "  bubblescope compare 1f1b,zb-h1 --pp 2 -m 8 --costs costs.json --backend cpu \\\n"
    "      --work transformer\n"
    "SCHEDULES are run for it: 1f1b and zb-h1 unless given; with --vpp, interleaved and\n"
    "interleaved-zb. What they do not run (a full backward, a split one) is not measured.\n";

std::vector<std::string> expand_schedules(const std::string& list, const ShapeOptions& shape) {
  if (!list.empty()) return split(list, ',');
  if (shape.chunks.value_or(1) > 1) return {"interleaved", "interleaved-zb"};
  return {"1f1b", "zb-h1"};
}

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

struct Request {
  std::vector<std::string> schedules;
  PredictOptions options;
  RunOptions run;
  bool contention = true;  ///< also measures by the number of busy ranks of a device
};

/// Synchronous training ends with the optimizer's steps, so that these are measured too. On devices
/// some run after the step and take no time in it.
LowerOptions choose_lowering(const Request& request, const Schedule& schedule) {
  LowerOptions options = request.options.cost.lower;
  const bool trains = request.run.work == WorkKind::kTransformer && !schedule.forward_only &&
                      schedule.weights.empty();
  if (trains && options.update.optimizer == OptimizerMode::kNone)
    options.update.optimizer = OptimizerMode::kLocal;
  return options;
}

CalibratedCosts measure_costs(const Request& request, const exec::Processes& processes) {
  std::vector<Measurement> measurements;
  for (const std::string& name : request.schedules) {
    const ValidSchedule schedule = load_valid_schedule(name, request.options, CostUse::kOrderOnly);
    const Program program = lower_or_explain(schedule, choose_lowering(request, schedule));
    measurements.push_back(measure(schedule, program, {request.options, request.run, processes}));
    const auto& breakdown = measurements.back().breakdown;
    if (breakdown) throw Error(breakdown->fault, name + ": " + breakdown->message);
    if (processes.is_coordinator())
      print_message("measured {} step(s) of {}\n", request.run.steps, name);
  }
  const std::vector<exec::Observation> observations = collect_observations(measurements);
  const ValidSchedule& schedule = measurements[0].step.schedule;
  const exec::Calibration calibration = exec::calibrate(observations, schedule->stages());
  MemoryModel memory;
  const bool on_device = static_cast<bool>(exec::find_backend(request.run.backend).start);
  if (request.run.work == WorkKind::kTransformer)
    memory = on_device
                 ? exec::device_training_memory(schedule, request.run.training, request.run.device)
                 : exec::training_memory(schedule, request.run.training);
  CalibratedCosts costs;
  costs.table.stages = stage_costs(calibration, schedule, memory);
  if (calibration.message)
    costs.table.message.latency = std::max<Nanos>(0, calibration.message->mean);
  costs.measured = {measurements[0].backend, measurements[0].work, measurements[0].device,
                    calibration};
  const RunContext context{request.options, request.run, processes};
  costs.table = with_copies(std::move(costs.table), measurements[0], memory, context);
  if (request.contention && measurements[0].ranks_per_device > 1)
    return with_contention(std::move(costs), measurements, context);
  if (!exec::find_backend(request.run.backend).time_messages || !calibration.message) return costs;
  return with_messages(std::move(costs), {observations, {}, 1, calibration.message->mean}, schedule,
                       request.run);
}

}  // namespace

int run_calibrate(const Arguments& arguments) {
  CommandFlags app{"Measure what ops and messages cost, and write a --costs file",
                   "bubblescope calibrate"};
  std::string list;
  std::string output = "-";
  Request request;
  request.run.backend = "cpu";
  request.run.work = WorkKind::kTransformer;
  request.run.steps = 10;
  app.add_option("SCHEDULES", list, "schedules to run, separated by commas");
  app.add_option("-o,--output", output, "file for the costs; - for stdout")->type_name("FILE");
  add_predict_options(app, request.options);
  add_run_options(app, request.run);
  app.add_flag("!--no-contention", request.contention,
               "GPUs: do not measure how ranks of one device slow each other");
  app.accept_old_name("--no-company", "--no-contention");
  app.footer(kCalibrateExample);
  if (!app.parse(arguments)) return 0;
  expect_folder(output);
  request.schedules = expand_schedules(list, request.options.shape);
  request.options = read_inputs(std::move(request.options), request.schedules);
  BackendSession session(request.run);
  if (session.processes().is_coordinator())
    warn_of_unused_run_options(app, request.run, request.options.cost.any_uniform);
  const CalibratedCosts costs = measure_costs(request, session.processes());
  if (session.reports())
    write_and_report(output, traces::write_cost_file(costs.table, [&](traces::JsonWriter& json) {
                       write_evidence_json(json, costs.measured);
                     }));
  return 0;
}

}  // namespace bubblescope::tools
