// Writes the cost file entry by entry.
#include "traces/costs/cost_file_writer.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "sim/ir/error.h"
#include "traces/costs/noise_entry.h"

namespace bubblescope::traces {

namespace {

void write_time(JsonWriter& json, const char* key, std::optional<Nanos> time) {
  if (time) json.member(key, write_cost_duration(*time));
}

void write_op_times(JsonWriter& json, const StageEntry& stage, std::span<const StageValue> times) {
  for (const StageValue& time : times) write_time(json, time.name, time_of(stage, time.key));
}

void write_positive_time(JsonWriter& json, const char* key, Nanos time) {
  if (time > 0) write_time(json, key, time);
}

void write_times(JsonWriter& json, const char* key, const std::vector<Nanos>& times) {
  if (times.empty()) return;
  json.key(key).begin_array();
  for (const Nanos time : times) json.value(write_cost_duration(time));
  json.end_array();
}

void write_activations(JsonWriter& json, const StageEntry& stage) {
  const MemoryDelta& delta = *stage.activation_bytes;
  json.key("activation_bytes").begin_object().member("saved", delta.forward);
  if (delta.input_grad != 0) json.member("released_by_input_grad", -delta.input_grad);
  if (stage.checkpoint) json.member("checkpoint", *stage.checkpoint);
  if (stage.selective_checkpoint) json.member("selective_checkpoint", *stage.selective_checkpoint);
  json.end_object();
}

void write_contention(JsonWriter& json, const ContentionEntry& contended) {
  json.key("contended").begin_object();
  for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
    write_times(json, kCostKeys[kind], contended[kind]);
  json.end_object();
}

void write_kind_contention(JsonWriter& json, const CostTable& table) {
  if (!table.kind_weights) return;
  json.key("kind_contention").begin_array();
  for (std::size_t kind = 0; kind < kCostKeys.size(); ++kind)
    for (std::size_t beside = 0; beside < kCostKeys.size(); ++beside)
      if (const double weight = (*table.kind_weights)[kind][beside]; weight != 1)
        json.begin_object()
            .member("kind", kCostKeys[kind])
            .member("beside", kCostKeys[beside])
            .member("weight", weight)
            .end_object();
  json.end_array();
}

void write_stage(JsonWriter& json, const StageEntry& stage) {
  json.begin_object();
  constexpr std::size_t kCopies = static_cast<std::size_t>(CostKey::kEvict);
  write_op_times(json, stage, kOpTimes.first(kCopies));
  write_positive_time(json, "optimizer", stage.update.optimizer);
  write_positive_time(json, "reduce_grad", stage.update.reduce_grad);
  write_positive_time(json, "unshard", stage.update.unshard);
  if (stage.activation_bytes) write_activations(json, stage);
  write_op_times(json, stage, kOpTimes.subspan(kCopies));
  if (stage.weight_bytes) json.member("weight_bytes", *stage.weight_bytes);
  write_time(json, "message_latency", stage.message_latency);
  if (stage.message_bytes) json.member("message_bytes", *stage.message_bytes);
  if (stage.contended) write_contention(json, *stage.contended);
  json.end_object();
}

void write_stage_kinds(JsonWriter& json, const CostTable& table) {
  if (table.stage_kinds.empty()) return;
  json.key("stage_kinds").begin_object();
  const char* const kinds[] = {"first", "middle", "last"};
  for (std::size_t kind = 0; kind < table.stage_kinds.size(); ++kind) {
    json.key(kinds[kind]);
    write_stage(json, table.stage_kinds[kind]);
  }
  json.end_object();
}

void write_stages(JsonWriter& json, const std::vector<StageEntry>& stages) {
  json.key("stages").begin_array();
  for (const StageEntry& stage : stages) write_stage(json, stage);
  json.end_array();
}

/// Writes the entries that measured jobs have beside the stages.
void write_job(JsonWriter& json, const CostTable& table) {
  if (!table.replicas.empty()) {
    json.key("replicas").begin_array();
    for (std::size_t replica = 0; replica < table.replicas.size(); ++replica) {
      write_stages(json.begin_object(), table.replicas[replica]);
      write_positive_time(json, "late_start", table.late_start(replica));
      json.end_object();
    }
    json.end_array();
  }
  if (table.noise) write_noise_entry(json.key("noise"), *table.noise);
  write_positive_time(json, "outside_pipeline", table.outside_pipeline);
  if (table.divisible) json.member("divisible", true);
  if (table.divisible && table.ends != Ends::kMoreLayers)
    json.member("ends", name_of(kStageEnds, table.ends));
}

/// The keys of the lists of a stage, in their order.
std::vector<CostKey> keys_of(const std::vector<CostList>& lists) {
  std::vector<CostKey> keys;
  for (const CostList& list : lists) keys.push_back(list.key);
  return keys;
}

/// Writes the values of one stage, one per micro-batch, as lists where slices differ.
void write_list(JsonWriter& json, const CostList& list) {
  json.begin_array();
  for (std::int32_t microbatch = 0; microbatch < list.microbatches; ++microbatch) {
    if (list.slices > 0) json.begin_array();
    for (std::int32_t slice = 0; slice < std::max(list.slices, 1); ++slice)
      json.value(write_cost_duration(list.at(microbatch, slice)));
    if (list.slices > 0) json.end_array();
  }
  json.end_array();
}

/// Whether a stage has values besides the times of its compute ops.
bool has_more(const StageEntry& stage) {
  const auto others = kOpTimes.subspan(kComputeKinds);
  return std::any_of(
             others.begin(), others.end(),
             [&](const StageValue& time) { return time_of(stage, time.key).has_value(); }) ||
         stage.activation_bytes || stage.update.optimizer > 0 || stage.update.reduce_grad > 0 ||
         stage.update.unshard > 0 || stage.weight_bytes || stage.message_latency ||
         stage.message_bytes || stage.contended;
}

/// Writes the lists of all stages in the root, with the stage as the outermost index.
void write_lists(JsonWriter& json, const CostTable& table) {
  const std::vector<CostKey> keys = keys_of(table.lists.front());
  bool fits = !keys.empty() && keys.front() == CostKey::kForward &&
              keys.back() <= CostKey::kRecompute &&
              std::none_of(table.stages.begin(), table.stages.end(), has_more);
  for (const std::vector<CostList>& lists : table.lists)
    fits = fits && keys_of(lists) == keys && lists.front().microbatches > 0;
  if (!fits)
    throw Error(table.file +
                ": of costs that differ by micro-batch, only the times of compute ops, listed for "
                "all stages, can be written to a cost file");
  for (std::size_t at = 0; at < keys.size(); ++at) {
    json.key(kCostKeys[static_cast<std::size_t>(keys[at])]).begin_object();
    json.key("per_microbatch").begin_array();
    for (const std::vector<CostList>& lists : table.lists) write_list(json, lists[at]);
    json.end_array().end_object();
  }
}

void write_bandwidths(JsonWriter& json, const std::vector<SpeedPoint>& points) {
  if (points.empty()) return;
  json.key("bandwidth_gbps");
  if (points.size() == 1 && points[0].bytes == 0) {
    json.value(points[0].bandwidth_gbps);
    return;
  }
  json.begin_array();
  for (const SpeedPoint& point : points)
    json.begin_array().value(point.bytes).value(point.bandwidth_gbps).end_array();
  json.end_array();
}

/// `inherited` are the bytes that the reader would assume if none are written.
void write_transfer(JsonWriter& json, const TransferEntry& transfer, Bytes inherited) {
  write_time(json, "latency", transfer.latency);
  if (transfer.bytes != inherited) json.member("bytes", transfer.bytes);
  write_bandwidths(json, transfer.bandwidths);
}

void write_message(JsonWriter& json, const CostTable& table) {
  const TransferEntry& message = table.message;
  if (message.latency == 0 && message.bytes == 0 && message.bandwidths.empty() &&
      table.contended_message.empty())
    return;
  json.key("message").begin_object();
  write_transfer(json, message, 0);
  write_times(json, "contended", table.contended_message);
  json.end_object();
}

void write_links(JsonWriter& json, const CostTable& table) {
  if (table.links.empty()) return;
  json.key("links").begin_array();
  for (const LinkEntry& link : table.links) {
    json.begin_object().member("from", link.from).member("to", link.to);
    write_transfer(json, link.transfer, table.message.bytes);
    json.end_object();
  }
  json.end_array();
}

/// Leaves the object open.
JsonWriter& begin_copy(JsonWriter& json, const char* key, const CopyEntry& copy) {
  json.key(key).begin_object();
  write_time(json, "latency", copy.latency);
  if (copy.bandwidth_gbps) json.member("bandwidth_gbps", *copy.bandwidth_gbps);
  if (!copy.slowdown.empty()) json.array("slowdown", copy.slowdown);
  return json;
}

void write_copy(JsonWriter& json, const CostTable& table) {
  const CopyEntry& copy = table.copy;
  if (copy.latency == 0 && !copy.bandwidth_gbps && copy.slowdown.empty() && !table.copy_to_rank)
    return;
  begin_copy(json, "copy", copy);
  if (table.copy_to_rank) begin_copy(json, "to_rank", *table.copy_to_rank).end_object();
  json.end_object();
}

}  // namespace

std::string write_cost_duration(Nanos time) { return std::to_string(time) + "ns"; }

std::string write_cost_file(const CostTable& table, const WriteMembers& write_measured) {
  if (table.cluster) throw Error(table.file + ": a cluster cannot be written to a cost file");
  if (!table.parts.stages.empty())
    throw Error(table.file + ": parts of ops cannot be written to a cost file");
  std::string text;
  JsonWriter json(text, {.indented = true, .ascii = true});
  json.begin_object().member("format", "bubblescope-costs/1");
  if (table.lists.empty())
    write_stages(json, table.stages);
  else
    write_lists(json, table);
  write_stage_kinds(json, table);
  write_job(json, table);
  write_message(json, table);
  if (write_measured) write_measured(json.key("measured"));
  write_positive_time(json, "norm", table.norm);
  write_positive_time(json, "op_gap", table.op_gap);
  if (table.sm_mhz) json.member("sm_mhz", *table.sm_mhz);
  write_copy(json, table);
  write_links(json, table);
  if (table.ranks_per_device) json.member("ranks_per_device", *table.ranks_per_device);
  write_kind_contention(json, table);
  if (!table.static_bytes.empty())
    json.key("memory").begin_object().array("static_bytes", table.static_bytes).end_object();
  json.end_object();
  return text + '\n';
}

}  // namespace bubblescope::traces
