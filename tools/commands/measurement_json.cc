// Writes a measurement as members of a report.
#include "tools/commands/measurement_json.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "exec/training/training_identity.h"
#include "sim/ir/counted.h"
#include "sim/ir/digest.h"
#include "sim/ir/quantile.h"

namespace bubblescope::tools {

namespace {

using traces::JsonWriter;

/// Writes a renamed member under both of its names.
template <class Value>
void write_twice(JsonWriter& json, const char* name, const char* old_name, const Value& value) {
  json.member(name, value).member(old_name, value);
}

void write_pools(JsonWriter& json, const std::vector<exec::PoolUse>& pools) {
  json.key("pools").begin_object().key("peak_bytes").begin_array();
  for (const exec::PoolUse& pool : pools) json.value(pool.peak);
  json.end_array().key("reserved_bytes").begin_array();
  for (const exec::PoolUse& pool : pools) json.value(pool.reserved);
  json.end_array().end_object();
}

void write_chosen(JsonWriter& json, const ChosenOrders& chosen) {
  json.key("chosen_orders").begin_object().member("policy", chosen.policy);
  json.member("ops", chosen.ops);
  json.member("moved_ops", chosen.moved).member("steps", chosen.steps);
  json.member("steps_as_shown", chosen.same_steps).end_object();
}

void write_range(JsonWriter& json, const char* name, const std::optional<exec::StateRange>& range) {
  if (range)
    json.key(name).begin_array().value(range->min_value).value(range->max_value).end_array();
}

void write_state(JsonWriter& json, const exec::DeviceState& state) {
  json.begin_object();
  write_twice(json, "samples", "looks", state.samples);
  write_range(json, "sm_mhz", state.sm_mhz);
  write_range(json, "memory_mhz", state.memory_mhz);
  write_range(json, "power_milliwatts", state.power_milliwatts);
  write_range(json, "power_limit_milliwatts", state.power_limit_milliwatts);
  write_range(json, "celsius", state.celsius);
  if (state.throttle_reasons)
    write_twice(json, "throttled_by", "slowed_by",
                exec::describe_throttle_reasons(*state.throttle_reasons));
  json.end_object();
}

}  // namespace

void write_epilogues_json(JsonWriter& json, const std::vector<exec::EpilogueUse>& uses) {
  json.key("epilogues").begin_array();
  for (const exec::EpilogueUse& use : uses) {
    json.begin_object().member("epilogue", use.is_gradient ? "gelu_grad" : "gelu");
    json.member("rows", use.rows);
    write_twice(json, "k", "inner", use.k);
    json.member("columns", use.columns).member("fused", use.is_fused).end_object();
  }
  json.end_array();
}

void write_device_state_json(JsonWriter& json, const exec::MonitoredDevices& monitored) {
  json.key("device_state");
  if (!monitored.obstacle.empty()) {
    json.value(monitored.obstacle);
    return;
  }
  json.begin_array();
  for (const exec::MonitoredDevice& device : monitored.devices) {
    json.begin_object().member("bus", device.bus);
    write_state(json.key("before"), device.before);
    write_state(json.key("during"), device.during);
    write_state(json.key("after"), device.after);
    json.key("steps").begin_array();
    for (const exec::DeviceState& step : device.steps) write_state(json, step);
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_activity_json(JsonWriter& json, const exec::StepActivity& activity) {
  const exec::ActivitySums sums = exec::sum_activity(activity);
  json.key("activity").begin_object().member("kernels", sums.kernels);
  json.member("copies", sums.copies).member("clears", sums.clears).member("lost", activity.lost);
  json.member("untimed", activity.untimed).member("ops_ns", sums.between_events);
  json.member("covered_ns", sums.covered);
  for (const char* key : {"longest", "most"}) {  // its name, and its old name
    json.key(key).begin_array();
    for (const auto& [name, nanos] : sums.longest)
      json.begin_object().member("name", name).member("ns", nanos).end_object();
    json.end_array();
  }
  json.end_object();
}

namespace {

void write_training_json(JsonWriter& json, const exec::TrainingResult& trained) {
  json.key("training").begin_object().member("steps", trained.losses.size());
  json.array("losses", trained.losses);
  json.member("weights_digest", digest_text(exec::digest_weights(trained.stages))).end_object();
}

}  // namespace

std::string describe_trained(const exec::TrainingResult& trained) {
  return fmt::format("trained {}, loss {:.6g} to {:.6g}; digest of the weights {}",
                     counted(std::ssize(trained.losses), "step"), trained.losses.front(),
                     trained.losses.back(), digest_text(exec::digest_weights(trained.stages)));
}

void write_measurement_json(JsonWriter& json, const Measurement& measurement) {
  const std::optional<exec::Verification>& verification = measurement.verification;
  json.member("work", measurement.work).member("device", measurement.device);
  json.key("gradients_match");
  verification ? json.value(verification->matches) : json.null();
  json.array("makespans_ns", measurement.makespans);
  if (verification) write_twice(json, "verification", "proof", to_string(*verification));
  if (measurement.chosen) write_chosen(json, *measurement.chosen);
  if (!measurement.pools.empty()) write_pools(json, measurement.pools);
  if (!measurement.epilogues.empty()) write_epilogues_json(json, measurement.epilogues);
  if (!to_string(measurement.devices).empty()) write_device_state_json(json, measurement.devices);
  if (measurement.activity) write_activity_json(json, *measurement.activity);
  if (!measurement.trained.stages.empty()) write_training_json(json, measurement.trained);
  if (measurement.checkpoints)
    write_checkpoints_json(json, *measurement.checkpoints, quantile(measurement.makespans, 50));
}

}  // namespace bubblescope::tools
