// Reads the cost file.
#include "traces/costs/cost_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sim/ir/error.h"
#include "sim/ir/shape.h"
#include "sim/model/transfer_limit.h"
#include "traces/costs/cluster_entry.h"
#include "traces/costs/contention_entry.h"
#include "traces/costs/cost_lists.h"
#include "traces/costs/noise_entry.h"
#include "traces/costs/part_entries.h"
#include "traces/costs/stage_entries.h"
#include "traces/files/file.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

constexpr JsonKey kContended{"contended", "in_company"};

/// A link inherits from "message" what it does not state itself.
TransferEntry read_transfer(const JsonNode& node, TransferEntry transfer) {
  const auto latency = node.find("latency");
  if (latency && !is_list(*latency)) transfer.latency = latency->duration();
  const auto bytes = node.find("bytes");
  if (bytes && !is_list(*bytes)) transfer.bytes = bytes->bytes();
  if (const auto bandwidth = node.find("bandwidth_gbps"))
    transfer.bandwidths = bandwidth->is_array()
                              ? read_bandwidths(*bandwidth)
                              : std::vector<SpeedPoint>{{0, bandwidth->positive_number()}};
  if (transfer.bytes > 0 && transfer.bandwidths.empty())
    node.refuse(
        "has 'bytes' without 'bandwidth_gbps'; add it, or give the whole time as 'latency'");
  if (transfer.nanos() > kMaxTransferNanos)
    node.refuse("takes longer than 10 days; correct 'bytes' or 'bandwidth_gbps'");
  return transfer;
}

bool any_stage_has(const CostTable& costs, const std::optional<std::int64_t> StageEntry::*value) {
  return std::any_of(costs.stages.begin(), costs.stages.end(),
                     [&](const StageEntry& stage) { return (stage.*value).has_value(); });
}

/// Returns the mean size of the messages of all stages, for what asks for one size.
Bytes mean_message_bytes(const CostTable& costs) {
  double sum = 0;
  for (const StageEntry& stage : costs.stages)
    sum += static_cast<double>(stage.message_bytes.value_or(costs.message.bytes));
  return std::llround(sum / static_cast<double>(costs.stages.size()));
}

LinkEntry read_link(const JsonNode& node, const CostTable& costs) {
  node.expect_keys({"from", "to", "latency", "bytes", "bandwidth_gbps"});
  LinkEntry link;
  link.from = node.at("from").integer32(0, kMaxRanks - 1);
  link.to = node.at("to").integer32(0, kMaxRanks - 1);
  if (link.from == link.to) node.refuse("must join two ranks, not one to itself");
  const auto refuse_both = [&](const char* key, bool by_stage) {
    const auto member = node.find(key);
    if (member && by_stage)
      member->refuse("is of a link, but stages say it too; remove one of them");
  };
  refuse_both("bytes", any_stage_has(costs, &StageEntry::message_bytes));
  refuse_both("latency", any_stage_has(costs, &StageEntry::message_latency));
  link.transfer = read_transfer(node, costs.message);
  return link;
}

/// Throws Error where messages of several sizes go with what needs one size.
void expect_priced_messages(const JsonNode& root, const JsonNode& message, const CostTable& costs) {
  const bool has_bytes = any_stage_has(costs, &StageEntry::message_bytes);
  const bool has_latency = any_stage_has(costs, &StageEntry::message_latency);
  if (has_bytes && costs.message.bandwidths.empty() && !root.find("cluster"))
    message.refuse("lacks 'bandwidth_gbps', but stages give the bytes of messages; add it");
  if (has_latency && root.find("cluster"))
    message.refuse(
        "has latencies of stages, but the links of 'cluster' have their own; remove one");
  if (!costs.contended_message.empty() && (has_bytes || has_latency))
    message.refuse("has 'contended', which needs messages that are all alike; remove it");
}

void read_messages(const JsonNode& root, CostTable& costs) {
  const auto message = root.find("message");
  if (message) {
    message->expect_keys({"latency", "bytes", "bandwidth_gbps", kContended});
    costs.message = read_transfer(*message, {});
    if (const auto list = message->find(kContended))
      for (std::size_t at = 0; at < list->size(); ++at)
        costs.contended_message.push_back((*list)[at].duration());
  }
  expect_priced_messages(root, message ? *message : root, costs);
  if (any_stage_has(costs, &StageEntry::message_bytes))
    costs.message.bytes = mean_message_bytes(costs);
  if (const auto links = root.find("links"))
    for (std::size_t at = 0; at < links->size(); ++at) {
      const LinkEntry link = read_link((*links)[at], costs);
      const bool is_known = std::any_of(
          costs.links.begin(), costs.links.end(),
          [&](const LinkEntry& known) { return known.from == link.from && known.to == link.to; });
      if (is_known)
        (*links)[at].refuse(fmt::format("is the link from {} to {} once more; remove one of them",
                                        link.from, link.to));
      costs.links.push_back(link);
    }
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

/// Refuses what needs the times of whole ops.
[[noreturn]] void refuse_with_parts(const JsonNode& node) {
  node.refuse(
      "does not go with parts of ops; remove it, or give the times of whole ops instead of parts");
}

/// Refuses the stages of a replica, which are not as many as those of the file.
[[noreturn]] void refuse_stage_count(const JsonNode& stages, const CostTable& costs) {
  if (costs.same_stages)
    stages.refuse(
        "has stages of its own, but the root gives the same values for any number of them; make "
        "one of these values a list with an entry per stage");
  stages.refuse("must have as many entries as " + costs.places.counted_by);
}

void read_devices(const JsonNode& root, CostTable& costs) {
  if (const auto gap = root.find("op_gap")) costs.op_gap = gap->duration();
  if (const auto clock = root.find("sm_mhz")) costs.sm_mhz = clock->positive_number();
  if (const auto ranks = root.find("ranks_per_device"))
    costs.ranks_per_device = ranks->integer32(1, kMaxRanks);
  costs.kind_weights = read_kind_contention(root);
}

/// Reads the kinds of stages, after the replicas, with which they do not go.
void read_stage_kinds(const JsonNode& root, CostTable& costs) {
  const auto kinds = root.find("stage_kinds");
  if (!kinds) return;
  kinds->expect_keys({"first", "middle", "last"});
  for (const char* const kind : {"first", "middle", "last"})
    costs.stage_kinds.push_back(read_stage(kinds->at(kind)));
  if (has_lists(costs) || !costs.replicas.empty())
    kinds->refuse(
        "goes with stages whose values all micro-batches and replicas share; leave it, or lists "
        "and 'replicas', out");
  if (!costs.parts.stages.empty()) refuse_with_parts(*kinds);
}

/// Reads how the first and the last stage differ from the others, also by its old key.
void read_ends(const JsonNode& root, CostTable& costs) {
  const auto ends = root.find("ends");
  if (ends) {
    const Named<Ends>* const known = find_named(kStageEnds, ends->text());
    if (known == nullptr)
      ends->refuse("must be \"more-layers\", \"heavier-layers\" or \"extra-work\"");
    costs.ends = known->choice;
  }
  const auto heavier = root.find("heavier_ends");
  if (heavier && ends) heavier->refuse("is what 'ends' says; remove it");
  if (heavier && heavier->boolean()) costs.ends = Ends::kHeavierLayers;
  if (costs.ends != Ends::kMoreLayers && !costs.divisible)
    (ends ? *ends : *heavier).refuse("says how stages are cut and joined; set 'divisible' to true");
}

/// Reads the entries of measured files beside the stages: replicas, noise, and the step around the
/// pipeline.
void read_measured_step(const JsonNode& root, CostTable& costs) {
  if (const auto replicas = root.find("replicas")) {
    if (has_lists(costs))
      replicas->refuse("goes with values that all micro-batches share; leave it or the lists out");
    if (!costs.parts.stages.empty()) refuse_with_parts(*replicas);
    if (replicas->size() == 0) replicas->refuse("is empty; give one object per replica");
    for (std::size_t replica = 0; replica < replicas->size(); ++replica) {
      const JsonNode node = (*replicas)[replica];
      node.expect_keys({"stages", "late_start"});
      const JsonNode stages = node.at("stages");
      std::vector<StageEntry>& entries = costs.replicas.emplace_back();
      for (std::size_t stage = 0; stage < stages.size(); ++stage)
        entries.push_back(read_stage(stages[stage]));
      if (costs.replicas.back().size() != costs.stages.size()) refuse_stage_count(stages, costs);
      const auto late = node.find("late_start");
      costs.late_starts.push_back(late ? late->duration() : 0);
    }
  }
  if (const auto noise = root.find("noise")) costs.noise = read_noise(*noise);
  if (const auto time = root.find("outside_pipeline")) costs.outside_pipeline = time->duration();
  if (const auto divisible = root.find("divisible")) {
    costs.divisible = divisible->boolean();
    if (costs.divisible && !costs.parts.stages.empty()) refuse_with_parts(*divisible);
    if (costs.divisible && has_lists(costs))
      divisible->refuse("goes with values that all micro-batches share; leave it or the lists out");
    const bool own_messages = any_stage_has(costs, &StageEntry::message_bytes) ||
                              any_stage_has(costs, &StageEntry::message_latency);
    if (costs.divisible && own_messages)
      divisible->refuse(
          "goes with messages that are alike; give one latency and one size in 'message'");
  }
  read_ends(root, costs);
}

}  // namespace

CostTable read_cost_file(const std::string& path) {
  return parse_cost_file(read_file(path), name_input(path));
}

CostTable parse_cost_file(std::string_view text, const std::string& file) {
  const JsonFile json(text, file);
  const JsonNode root = json.root();
  root.expect_format("bubblescope-costs/1");
  root.expect_keys({"format",
                    "stages",
                    "forward",
                    "backward",
                    "input_grad",
                    "weight_grad",
                    "recompute",
                    "selective_recompute",
                    "overlapped_pair",
                    "evict",
                    "load",
                    "evict_to_rank",
                    "load_from_rank",
                    "activation_bytes",
                    "optimizer",
                    "reduce_grad",
                    "unshard",
                    "weight_bytes",
                    "parts",
                    "part_contention",
                    "stage_kinds",
                    "message",
                    "norm",
                    "op_gap",
                    "sm_mhz",
                    "copy",
                    "links",
                    "memory",
                    "cluster",
                    "ranks_per_device",
                    "kind_contention",
                    "replicas",
                    "noise",
                    "outside_pipeline",
                    "divisible",
                    "ends",
                    "heavier_ends",
                    "measured"});
  CostTable costs;
  costs.file = file;
  // Each reader may refuse its entry because of what the earlier ones have read.
  costs.parts.contention = read_lane_contention(root);
  read_stages(root, costs);
  read_measured_step(root, costs);
  read_stage_kinds(root, costs);
  read_messages(root, costs);
  // The rest is independent.
  if (const auto norm = root.find("norm")) costs.norm = norm->duration();
  read_copy(root, costs);
  read_memory(root, costs);
  if (const auto cluster = root.find("cluster")) costs.cluster = read_cluster(*cluster);
  read_devices(root, costs);
  return costs;
}

}  // namespace bubblescope::traces
