// Writes what calibrate measured.
#include "tools/commands/calibration_evidence.h"

#include "traces/costs/cost_file_writer.h"

namespace bubblescope::tools {

namespace {

using traces::JsonWriter;

void write_estimate(JsonWriter& json, const char* key,
                    const std::optional<exec::Estimate>& estimate) {
  if (!estimate) return;
  json.key(key).begin_object().member("mean", traces::write_cost_duration(estimate->mean));
  json.member("half_width_95", traces::write_cost_duration(estimate->half_width));
  json.member("jitter", estimate->jitter).member("samples", estimate->samples).end_object();
}

void write_stages(JsonWriter& json, const exec::Calibration& calibration) {
  json.key("stages").begin_array();
  for (std::size_t stage = 0; stage < calibration.ops.size(); ++stage) {
    json.begin_object();
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
      write_estimate(json, kCostKeys[kind], calibration.ops[stage][kind]);
    write_estimate(json, "optimizer", calibration.updates[stage].optimizer);
    write_estimate(json, "reduce_grad", calibration.updates[stage].reduce_grad);
    json.end_object();
  }
  json.end_array();
}

void write_samples(JsonWriter& json,
                   const std::vector<std::array<SampleCounts, kComputeKinds>>& samples) {
  json.key("samples_by_busy_ranks").begin_array();
  for (const auto& by_kind : samples) {
    json.begin_object();
    for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
      if (!by_kind[kind].empty()) json.array(kCostKeys[kind], by_kind[kind]);
    json.end_object();
  }
  json.end_array();
}

void write_messages(JsonWriter& json, const MessageSamples& messages) {
  json.key("messages").begin_object();
  if (!messages.by_size.empty()) {
    json.key("by_size").begin_array();
    for (const exec::MessageTime& time : messages.by_size) {
      json.begin_object().member("bytes", time.bytes);
      json.member("time", traces::write_cost_duration(time.nanos)).end_object();
    }
    json.end_array();
  }
  if (!messages.by_busy_ranks.empty()) json.array("samples_by_busy_ranks", messages.by_busy_ranks);
  json.end_object();
}

}  // namespace

SampleCounts count_samples(const std::vector<std::optional<exec::Estimate>>& estimates) {
  SampleCounts counts;
  for (const std::optional<exec::Estimate>& estimate : estimates)
    counts.push_back(estimate ? estimate->samples : 0);
  return counts;
}

void write_evidence_json(JsonWriter& json, const CalibrationEvidence& evidence) {
  json.begin_object().member("backend", evidence.backend).member("work", evidence.work);
  json.member("device", evidence.device);
  write_stages(json, evidence.calibration);
  write_estimate(json, "message", evidence.calibration.message);
  write_estimate(json, "op_gap", evidence.calibration.op_gap);
  if (!evidence.samples.empty()) write_samples(json, evidence.samples);
  if (evidence.messages) write_messages(json, *evidence.messages);
  json.end_object();
}

}  // namespace bubblescope::tools
