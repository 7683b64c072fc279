// Writes durations to the nanosecond, so that the file reads back as the same table.
#include "traces/costs/write_costs.h"

#include "traces/costs/cost_file.h"
#include "traces/costs/noise_entry.h"
#include "traces/json/json_writer.h"

namespace bubblescope::traces {

namespace {

void write_time(JsonWriter& json, const char* key, const std::optional<Nanos>& time) {
  if (time) json.member(key, write_cost_duration(*time));
}

void write_stages(JsonWriter& json, const std::vector<StageEntry>& stages, int indent) {
  json.key("stages").begin_array();
  for (const StageEntry& stage : stages) {
    json.line(indent).begin_object();
    write_time(json, "forward", stage.forward);
    write_time(json, "backward", stage.backward);
    write_time(json, "input_grad", stage.input_grad);
    write_time(json, "weight_grad", stage.weight_grad);
    write_time(json, "recompute", stage.recompute);
    json.end_object();
  }
  json.end_array();
}

void write_replicas(JsonWriter& json, const CostTable& table) {
  if (table.replicas.empty()) return;
  json.line(1).key("replicas").begin_array();
  for (const std::vector<StageEntry>& stages : table.replicas) {
    json.line(2).begin_object();
    write_stages(json, stages, 3);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string write_measured_costs(const CostTable& table,
                                 const std::vector<std::pair<std::string, std::string>>& measured) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("format", "bubblescope-costs/1");
  write_stages(json.line(1), table.stages, 2);
  write_replicas(json, table);
  json.line(1).key("message").begin_object();
  write_time(json, "latency", table.message.latency);
  json.end_object();
  if (table.noise) write_noise_entry(json.line(1).key("noise"), *table.noise);
  if (table.outside_pipeline > 0) {
    json.line(1);
    write_time(json, "outside_pipeline", table.outside_pipeline);
  }
  if (table.divisible) json.line(1).member("divisible", true);
  json.line(1).key("measured").begin_object();
  for (const auto& [name, value] : measured) json.key(name).raw(value);
  json.end_object().end_object();
  return out + '\n';
}

}  // namespace bubblescope::traces
