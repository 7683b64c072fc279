// calibrate: measures the costs of ops and messages, and writes them as a cost file.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
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
#include "traces/costs/contention_entry.h"
#include "traces/costs/cost_file.h"
#include "traces/files/format.h"

namespace bubblescope::tools {

namespace {

using Json = nlohmann::ordered_json;

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

Json confidence(const exec::Estimate& estimate) {
  return {{"mean", traces::write_cost_duration(estimate.mean)},
          {"half_width_95", traces::write_cost_duration(estimate.half_width)},
          {"jitter", estimate.jitter},
          {"samples", estimate.samples}};
}

/// Writes the bytes of a stage's activations, and under a key of its own what a recomputed forward
/// saves. Cost files refer to whole sequences.
Json bytes_json(const Schedule& schedule, const MemoryModel& memory, std::size_t stage) {
  const MemoryDelta& delta = memory.activation_bytes[stage];
  const Bytes slices = schedule.shape.slices;
  Json bytes{{"saved", delta.forward * slices},
             {"released_by_input_grad", std::max<Bytes>(0, -delta.input_grad) * slices}};
  if (schedule.recompute_of_stage.empty()) return bytes;
  const Recompute recompute = schedule.recompute_of_stage[stage];
  if (recompute == Recompute::kFull) bytes["checkpoint"] = memory.checkpoint_bytes[stage] * slices;
  if (recompute == Recompute::kSelective)
    bytes["selective_checkpoint"] = memory.checkpoint_bytes[stage] * slices;
  return bytes;
}

/// The key of R depends on what was recomputed.
std::string key_of(const Schedule& schedule, std::size_t stage, std::size_t kind) {
  const bool selective =
      schedule.recompute(static_cast<std::int32_t>(stage)) == Recompute::kSelective;
  if (kind == static_cast<std::size_t>(OpKind::kRecompute) && selective)
    return "selective_recompute";
  return kCostKeys[kind];
}

Json stages_json(const exec::Calibration& calibration, const Schedule& schedule,
                 const MemoryModel& memory) {
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < calibration.ops.size(); ++stage) {
    Json entry = Json::object();
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
      if (const auto& known = calibration.ops[stage][kind])
        entry[key_of(schedule, stage, kind)] =
            traces::write_cost_duration(known->mean * schedule.shape.slices);
    const exec::UpdateEstimate& update = calibration.updates[stage];
    if (update.optimizer && update.optimizer->mean > 0)
      entry["optimizer"] = traces::write_cost_duration(update.optimizer->mean);
    if (update.reduce_grad)
      entry["reduce_grad"] = traces::write_cost_duration(update.reduce_grad->mean);
    if (!memory.activation_bytes.empty())
      entry["activation_bytes"] = bytes_json(schedule, memory, stage);
    stages.push_back(std::move(entry));
  }
  return stages;
}

/// Describes the measurement and its uncertainty.
Json measured_json(const exec::Calibration& calibration, const Measurement& measurement) {
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < calibration.ops.size(); ++stage) {
    const auto& estimates = calibration.ops[stage];
    const exec::UpdateEstimate& update = calibration.updates[stage];
    Json entry = Json::object();
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
      if (estimates[kind]) entry[kCostKeys[kind]] = confidence(*estimates[kind]);
    if (update.optimizer) entry["optimizer"] = confidence(*update.optimizer);
    if (update.reduce_grad) entry["reduce_grad"] = confidence(*update.reduce_grad);
    stages.push_back(std::move(entry));
  }
  Json measured{{"backend", measurement.backend},
                {"work", measurement.work},
                {"device", measurement.device},
                {"stages", std::move(stages)}};
  if (calibration.message) measured["message"] = confidence(*calibration.message);
  if (calibration.between_ops) measured["between_ops"] = confidence(*calibration.between_ops);
  return measured;
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

Json measure_costs(const Request& request, const exec::Processes& processes) {
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
  Json costs{{"format", "bubblescope-costs/1"},
             {"stages", stages_json(calibration, schedule, memory)}};
  if (calibration.message)
    costs["message"] = {
        {"latency", traces::write_cost_duration(std::max<Nanos>(0, calibration.message->mean))}};
  costs["measured"] = measured_json(calibration, measurements[0]);
  const RunContext context{request.options, request.run, processes};
  costs = with_copies(std::move(costs), measurements[0], memory, context);
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
  const Json costs = measure_costs(request, session.processes());
  if (session.reports())
    write_and_report(output,
                     costs.dump(1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
  return 0;
}

}  // namespace bubblescope::tools
