// Turns estimates into the entries of a cost file.
#include "tools/commands/calibrate_costs.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "exec/calibration/calibrate.h"
#include "tools/commands/calibrate_contention.h"
#include "tools/commands/calibrate_copies.h"
#include "tools/commands/calibrate_messages.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

namespace {

using Json = nlohmann::ordered_json;

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

/// The memory of a transformer's ops; empty if nothing is trained.
MemoryModel measured_memory(const Schedule& schedule, const RunOptions& run) {
  if (run.work != WorkKind::kTransformer) return {};
  const bool on_device = static_cast<bool>(exec::find_backend(run.backend).start);
  return on_device ? exec::device_training_memory(schedule, run.training, run.device)
                   : exec::training_memory(schedule, run.training);
}

/// The mean of durations ("120ns") or of bytes.
Json mean_of_numbers(const std::vector<Json>& numbers) {
  std::int64_t sum = 0;
  for (const Json& number : numbers)
    sum += number.is_string() ? std::stoll(number.get<std::string>()) : number.get<std::int64_t>();
  sum /= static_cast<std::int64_t>(numbers.size());
  return numbers[0].is_string() ? Json(traces::write_cost_duration(sum)) : Json(sum);
}

/// The mean of the entries of several stages, of the keys that all of them have.
Json mean_of(const std::vector<Json>& entries) {
  const Json& first = entries[0];
  if (!first.is_structured()) return mean_of_numbers(entries);
  Json mean = first.is_array() ? Json::array() : Json::object();
  for (auto member = first.begin(); member != first.end(); ++member) {
    std::vector<Json> members;
    for (const Json& entry : entries)
      if (first.is_object() && entry.contains(member.key()))
        members.push_back(entry.at(member.key()));
      else if (first.is_array() && mean.size() < entry.size())
        members.push_back(entry.at(mean.size()));
    if (members.size() != entries.size()) continue;
    if (first.is_array())
      mean.push_back(mean_of(members));
    else
      mean[member.key()] = mean_of(members);
  }
  return mean;
}

/// The stages of schedules, without contention.
Json stages_of(const std::vector<Measurement>& measurements, const RunOptions& run) {
  const std::vector<exec::Observation> observations = collect_observations(measurements);
  const ValidSchedule& schedule = measurements[0].step.schedule;
  return stages_json(exec::calibrate(observations, schedule->stages()), schedule,
                     measured_memory(schedule, run));
}

/// Adds the costs of stages for schedules with another number of them.
Json with_stage_kinds(Json costs, const std::vector<Measurement>& wider, const RunOptions& run) {
  Json kinds = write_stage_kinds(wider.empty() ? costs["stages"] : stages_of(wider, run));
  if (kinds.is_null()) return costs;
  costs["stage_kinds"] = std::move(kinds);
  return costs;
}

}  // namespace

LowerOptions choose_calibration_lowering(const PredictOptions& predict, const RunOptions& run,
                                         const Schedule& schedule) {
  LowerOptions options = predict.cost.lower;
  const bool trains =
      run.work == WorkKind::kTransformer && !schedule.forward_only && schedule.weights.empty();
  if (trains && options.update.optimizer == OptimizerMode::kNone)
    options.update.optimizer = OptimizerMode::kLocal;
  return options;
}

Json write_stage_kinds(const Json& stages) {
  if (stages.size() < 3) return nullptr;
  return {{"first", stages.front()},
          {"middle", mean_of({stages.begin() + 1, stages.end() - 1})},
          {"last", stages.back()}};
}

Json write_measured_costs(const std::vector<Measurement>& measurements,
                          const std::vector<Measurement>& wider, const CostRequest& request) {
  const RunOptions& run = request.context.run;
  const std::vector<exec::Observation> observations = collect_observations(measurements);
  const ValidSchedule& schedule = measurements[0].step.schedule;
  const exec::Calibration calibration = exec::calibrate(observations, schedule->stages());
  const MemoryModel memory = measured_memory(schedule, run);
  Json costs{{"format", "bubblescope-costs/1"},
             {"stages", stages_json(calibration, schedule, memory)}};
  if (calibration.message)
    costs["message"] = {
        {"latency", traces::write_cost_duration(std::max<Nanos>(0, calibration.message->mean))}};
  costs["measured"] = measured_json(calibration, measurements[0]);
  costs = with_copies(std::move(costs), measurements[0], memory, request.context);
  if (request.contention && measurements[0].ranks_per_device > 1)
    costs = with_contention(std::move(costs), measurements, request.context);
  else if (exec::find_backend(run.backend).time_messages && calibration.message)
    costs = with_messages(std::move(costs), {observations, {}, 1, calibration.message->mean},
                          schedule, run);
  return schedule->pipelines > 1 ? costs : with_stage_kinds(std::move(costs), wider, run);
}

}  // namespace bubblescope::tools
