// Reads the cost file.
#include "traces/costs/cost_file.h"

#include <fmt/format.h>

#include "sim/ir/error.h"
#include "traces/costs/cluster_entry.h"
#include "traces/costs/contention_entry.h"
#include "traces/files/format.h"
#include "traces/json/json_node.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

constexpr JsonKey kSaved{"saved", "kept"};
constexpr JsonKey kContended{"contended", "in_company"};

std::optional<Nanos> read_duration(const JsonNode& node, const char* key) {
  const auto member = node.find(key);
  if (!member) return {};
  return member->duration();
}

std::optional<Bytes> read_checkpoint(const JsonNode& node, const char* key, Bytes saved) {
  const auto member = node.find(key);
  if (!member) return {};
  if (member->bytes() > saved) member->refuse("must not exceed /saved: it is a part of that");
  return member->bytes();
}

MemoryDelta read_activation_bytes(const JsonNode& node) {
  node.expect_keys({kSaved, "released_by_input_grad", "checkpoint", "selective_checkpoint"});
  const Bytes saved = node.at(kSaved).bytes();
  const auto member = node.find("released_by_input_grad");
  const Bytes released = member ? member->bytes() : 0;
  if (released > saved) member->refuse("must not exceed /saved: nothing else can be released");
  return {saved, -released, released - saved};
}

StageEntry read_stage(const JsonNode& node) {
  node.expect_keys({"forward", "backward", "input_grad", "weight_grad", "recompute",
                    "selective_recompute", "overlapped_pair", "evict", "load", "evict_to_rank",
                    "load_from_rank", "activation_bytes", "optimizer", "reduce_grad", "unshard",
                    "weight_bytes", kContended});
  StageEntry stage;
  stage.forward = node.at("forward").duration();
  stage.backward = read_duration(node, "backward");
  stage.input_grad = read_duration(node, "input_grad");
  stage.weight_grad = read_duration(node, "weight_grad");
  stage.recompute = read_duration(node, "recompute");
  stage.selective_recompute = read_duration(node, "selective_recompute");
  stage.overlapped_pair = read_duration(node, "overlapped_pair");
  stage.evict = read_duration(node, "evict");
  stage.load = read_duration(node, "load");
  stage.evict_to_rank = read_duration(node, "evict_to_rank");
  stage.load_from_rank = read_duration(node, "load_from_rank");
  if (stage.input_grad.has_value() != stage.weight_grad.has_value())
    node.refuse("has one of 'input_grad' and 'weight_grad'; give both, or neither");
  if (stage.overlapped_pair && *stage.overlapped_pair < stage.forward)
    node.at("overlapped_pair").refuse("must be at least 'forward', which is a part of it");
  if (const auto bytes = node.find("activation_bytes")) {
    stage.activation_bytes = read_activation_bytes(*bytes);
    const Bytes saved = stage.activation_bytes->forward;
    stage.checkpoint = read_checkpoint(*bytes, "checkpoint", saved);
    stage.selective_checkpoint = read_checkpoint(*bytes, "selective_checkpoint", saved);
  }
  stage.update.optimizer = read_duration(node, "optimizer").value_or(0);
  stage.update.reduce_grad = read_duration(node, "reduce_grad").value_or(0);
  stage.update.unshard = read_duration(node, "unshard").value_or(0);
  if (const auto bytes = node.find("weight_bytes")) stage.weight_bytes = bytes->bytes();
  if (const auto times = node.find(kContended)) stage.contended = read_contention(*times);
  return stage;
}

/// A link inherits from "message" what it does not state itself.
TransferEntry read_transfer(const JsonNode& node, TransferEntry transfer) {
  constexpr double kLongest = 1e15;
  if (const auto latency = node.find("latency")) transfer.latency = latency->duration();
  if (const auto bytes = node.find("bytes")) transfer.bytes = bytes->bytes();
  if (const auto bandwidth = node.find("bandwidth_gbps"))
    transfer.bandwidths = bandwidth->is_array()
                              ? read_bandwidths(*bandwidth)
                              : std::vector<SpeedPoint>{{0, bandwidth->positive_number()}};
  if (transfer.bytes > 0 && transfer.bandwidths.empty())
    node.refuse(
        "has 'bytes' without 'bandwidth_gbps'; add it, or give the whole time as 'latency'");
  if (transfer.nanos() > kLongest)
    node.refuse("takes longer than 10 days; correct 'bytes' or 'bandwidth_gbps'");
  return transfer;
}

LinkEntry read_link(const JsonNode& node, const TransferEntry& message) {
  node.expect_keys({"from", "to", "latency", "bytes", "bandwidth_gbps"});
  LinkEntry link;
  link.from = node.at("from").integer32(0, kMaxStage);
  link.to = node.at("to").integer32(0, kMaxStage);
  if (link.from == link.to) node.refuse("must join two ranks, not one to itself");
  link.transfer = read_transfer(node, message);
  return link;
}

void read_messages(const JsonNode& root, CostTable& costs) {
  TransferEntry message;
  if (const auto node = root.find("message")) {
    node->expect_keys({"latency", "bytes", "bandwidth_gbps", kContended});
    message = read_transfer(*node, message);
    if (const auto list = node->find(kContended))
      for (std::size_t at = 0; at < list->size(); ++at)
        costs.contended_message.push_back((*list)[at].duration());
  }
  costs.message = message;
  if (const auto links = root.find("links"))
    for (std::size_t at = 0; at < links->size(); ++at)
      costs.links.push_back(read_link((*links)[at], message));
}

CopyEntry read_copy_entry(const JsonNode& node) {
  CopyEntry copy;
  if (const auto latency = node.find("latency")) copy.latency = latency->duration();
  if (const auto bandwidth = node.find("bandwidth_gbps"))
    copy.bandwidth_gbps = bandwidth->positive_number();
  if (const auto list = node.find("slowdown"))
    for (std::size_t at = 0; at < list->size(); ++at) {
      copy.slowdown.push_back((*list)[at].positive_number());
      if (copy.slowdown.back() < 1)
        (*list)[at].refuse("is less than 1, as if others made the copy faster; correct it");
    }
  return copy;
}

void read_copy(const JsonNode& root, CostTable& costs) {
  const auto node = root.find("copy");
  if (!node) return;
  node->expect_keys({"latency", "bandwidth_gbps", "slowdown", "to_rank"});
  costs.copy = read_copy_entry(*node);
  const auto to_rank = node->find("to_rank");
  if (!to_rank) return;
  to_rank->expect_keys({"latency", "bandwidth_gbps", "slowdown"});
  costs.copy_to_rank = read_copy_entry(*to_rank);
}

void read_memory(const JsonNode& root, CostTable& costs) {
  const auto memory = root.find("memory");
  if (!memory) return;
  memory->expect_keys({"static_bytes"});
  const JsonNode bytes = memory->at("static_bytes");
  for (std::size_t rank = 0; rank < bytes.size(); ++rank)
    costs.static_bytes.push_back(bytes[rank].bytes());
}

}  // namespace

CostTable read_cost_file(const std::string& path) {
  return parse_cost_file(read_file(path), path == "-" ? "stdin" : path);
}

CostTable parse_cost_file(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  root.expect_format("bubblescope-costs/1");
  root.expect_keys({"format", "stages", "message", "norm", "copy", "links", "memory", "cluster",
                    "ranks_per_device", "measured"});
  CostTable costs;
  costs.file = file;
  const JsonNode stages = root.at("stages");
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    costs.stages.push_back(read_stage(stages[stage]));
  if (costs.stages.empty()) stages.refuse("is empty; give one object per stage");
  read_messages(root, costs);
  costs.norm = read_duration(root, "norm").value_or(0);
  read_copy(root, costs);
  read_memory(root, costs);
  if (const auto cluster = root.find("cluster")) costs.cluster = read_cluster(*cluster);
  if (const auto ranks = root.find("ranks_per_device"))
    costs.ranks_per_device = ranks->integer32(1, kMaxStage);
  return costs;
}

}  // namespace bubblescope::traces
