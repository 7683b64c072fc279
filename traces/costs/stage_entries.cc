// Reads the entries of a cost file's stages.
#include "traces/costs/stage_entries.h"

#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/costs/contention_entry.h"
#include "traces/costs/cost_lists.h"
#include "traces/costs/part_entries.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxPartsOfFile = 1'000'000;  ///< over all stages and layers

constexpr JsonKey kSaved{"saved", "kept"};
constexpr JsonKey kContended{"contended", "in_company"};

JsonKey key_of(const StageValue& value) {
  return value.key == CostKey::kSaved ? kSaved : JsonKey(value.name);
}

/// Reads the values that a node has.
void read_values(const JsonNode& node, std::span<const StageValue> values, StageDraft& draft,
                 ListLengths& lengths) {
  for (const StageValue& value : values)
    if (const auto member = node.find(key_of(value)))
      read_value(*member, value.key, draft, lengths);
}

/// Refuses the value of one stage: the entry of a list in the root, or the value itself.
[[noreturn]] void refuse_value(const JsonNode& value, std::size_t stage, const std::string& what) {
  if (!value.is_array()) value.refuse(what);
  const JsonNode own = value[stage];
  own.refuse(what);
}

/// Lists of micro-batches are compared one by one when they are used.
void expect_part_of_saved(const JsonNode& node, JsonKey key, std::optional<Bytes> part,
                          const StageDraft& draft) {
  const auto member = node.find(key);
  const auto whole = node.find(kSaved);
  if (!member || member->is_object() || whole->is_object()) return;
  if (part.value_or(0) <= draft.entry.activation_bytes->forward) return;
  const bool is_release = key.name == std::string_view("released_by_input_grad");
  refuse_value(*member, draft.stage,
               fmt::format("must not exceed {}: {}", whole->pointer(),
                           is_release ? "nothing else can be released" : "it is a part of that"));
}

void read_activation_bytes(const JsonNode& node, StageDraft& draft, ListLengths& lengths) {
  const bool has_parts =
      node.is_object() && !node.find("per_microbatch") && !node.find("per_slice");
  if (!has_parts && draft.in_root) return read_value(node, CostKey::kSaved, draft, lengths);
  node.expect_keys({kSaved, "released_by_input_grad", "checkpoint", "selective_checkpoint"});
  node.at(kSaved);
  read_values(node, kActivations, draft, lengths);
  const StageEntry& entry = draft.entry;
  expect_part_of_saved(node, "released_by_input_grad", -entry.activation_bytes->input_grad, draft);
  expect_part_of_saved(node, "checkpoint", entry.checkpoint, draft);
  expect_part_of_saved(node, "selective_checkpoint", entry.selective_checkpoint, draft);
}

/// Reads the parts of ops by their kind. A duration beside them must be that of the parts.
void read_parts_by_kind(const JsonNode& node, StageDraft& draft) {
  const auto parts = node.find("parts");
  if (!parts) return;
  parts->expect_keys(
      {"forward", "backward", "input_grad", "weight_grad", "recompute", "overlapped_pair"});
  if (const auto pair = parts->find("overlapped_pair"))
    read_parts(*pair, CostKey::kOverlappedPair, draft);
  for (std::size_t at = 0; at < kComputeKinds; ++at) {
    const auto member = parts->find(kCostKeys[at]);
    if (!member) continue;
    const CostKey key = time_key(static_cast<OpKind>(at));
    const std::optional<Nanos> given = time_of(draft.entry, key);
    read_parts(*member, key, draft);
    const auto duration = node.find(kCostKeys[at]);
    const std::optional<Nanos> time = time_of(draft.entry, key);
    if (duration && given != time)
      duration->refuse("is not the time of its parts, " + to_text(time.value_or(0)) +
                       "; remove it, or correct it");
  }
}

/// Reads what both a stage's object and the root may give.
void read_shared_values(const JsonNode& node, StageDraft& draft, ListLengths& lengths) {
  read_values(node, kOpTimes, draft, lengths);
  read_parts_by_kind(node, draft);
  if (const auto bytes = node.find("activation_bytes"))
    read_activation_bytes(*bytes, draft, lengths);
  UpdateCost& update = draft.entry.update;
  if (const auto time = node.find("optimizer"))
    update.optimizer = read_shared_duration(*time, draft);
  if (const auto time = node.find("reduce_grad"))
    update.reduce_grad = read_shared_duration(*time, draft);
  if (const auto time = node.find("unshard")) update.unshard = read_shared_duration(*time, draft);
  if (const auto bytes = node.find("weight_bytes"))
    draft.entry.weight_bytes = read_shared_bytes(*bytes, draft);
}

/// Reads what the root says about the messages of stages.
void read_message_values(const JsonNode& root, StageDraft& draft, ListLengths& lengths) {
  const auto message = root.find("message");
  if (!message) return;
  const auto read = [&](const char* key, CostKey as) {
    const auto member = message->find(key);
    if (member && is_list(*member)) read_value(*member, as, draft, lengths);
  };
  read("latency", CostKey::kMessageLatency);
  read("bytes", CostKey::kMessageBytes);
}

void read_own_values(const JsonNode& node, StageDraft& draft, ListLengths& lengths) {
  node.expect_keys({"forward",          "backward",       "input_grad",
                    "weight_grad",      "recompute",      "selective_recompute",
                    "overlapped_pair",  "evict",          "load",
                    "evict_to_rank",    "load_from_rank", "parts",
                    "activation_bytes", "optimizer",      "reduce_grad",
                    "unshard",          "weight_bytes",   "message_latency",
                    "message_bytes",    kContended});
  read_shared_values(node, draft, lengths);
  read_values(node, kMessageValues, draft, lengths);
  const auto times = node.find(kContended);
  if (!times) return;
  if (!draft.lists.empty())
    times->refuse("goes with values that all micro-batches share; leave it or the lists out");
  if (draft.parts.any())
    times->refuse(
        "does not go with parts of ops; remove it, or give the times of whole ops instead of "
        "parts");
  draft.entry.contended = read_contention(*times);
}

/// Throws Error where the entry is not complete. `node` is the stage's object or the root, where
/// values that it lacks may be.
void expect_complete(const JsonNode& node, const JsonNode& root, const StageDraft& draft) {
  const StageEntry& entry = draft.entry;
  if (!root.find("forward") && draft.parts.of(OpKind::kForward).empty()) node.at("forward");
  if (entry.input_grad.has_value() != entry.weight_grad.has_value()) {
    const bool in_root = root.find("input_grad") || root.find("weight_grad");
    (in_root ? root : node)
        .refuse("has one of 'input_grad' and 'weight_grad'; give both, or neither");
  }
  if (draft.parts.pair_order && draft.parts.of(OpKind::kForward).empty()) {
    const auto in_root = root.find("overlapped_pair");
    refuse_value(in_root ? *in_root : node.at("overlapped_pair"), draft.stage,
                 "has an order of parts, but 'forward' has no parts; give them");
  }
  if (!entry.overlapped_pair || !draft.lists.empty() || *entry.overlapped_pair >= entry.forward)
    return;
  const auto in_root = root.find("overlapped_pair");
  refuse_value(in_root ? *in_root : node.at("overlapped_pair"), draft.stage,
               "must be at least 'forward', which is a part of it");
}

/// Returns a value of a stage's object or of the root, or its parts.
std::optional<JsonNode> find_value(const JsonNode& node, JsonKey key) {
  if (const auto member = node.find(key)) return member;
  const auto parts = node.find("parts");
  return parts ? parts->find(key) : std::nullopt;
}

/// Throws Error where a stage's object and the root give the same value.
void expect_one_place(const JsonNode& root, const JsonNode& own) {
  const auto expect = [&](JsonKey key) {
    const auto member = find_value(own, key);
    if (member && find_value(root, key))
      member->refuse("is also in the root of the file, for all stages; remove one of them");
  };
  for (const StageValue& each : kOpTimes) expect(each.name);
  for (const char* key :
       {"activation_bytes", "optimizer", "reduce_grad", "unshard", "weight_bytes"})
    expect(key);
}

/// R runs F's parts again, unless the file gives its time.
void recompute_like_forward(StageDraft& draft) {
  if (draft.entry.recompute) return;
  auto& parts = draft.parts.of_kind;
  parts[static_cast<std::size_t>(OpKind::kRecompute)] = draft.parts.of(OpKind::kForward);
}

StageDraft read_stage(const JsonNode& root, const std::optional<JsonNode>& own, std::size_t stage,
                      const LaneContention& contention, ListLengths& lengths) {
  StageDraft draft;
  draft.stage = stage;
  draft.contention = contention;
  draft.in_root = true;
  read_shared_values(root, draft, lengths);
  read_message_values(root, draft, lengths);
  draft.in_root = false;
  if (own) {
    read_own_values(*own, draft, lengths);
    expect_one_place(root, *own);
  }
  expect_complete(own ? *own : root, root, draft);
  recompute_like_forward(draft);
  return draft;
}

/// Counts the stages in the root's lists.
StageCount count_stages(const JsonNode& root) {
  StageCount count;
  if (const auto stages = root.find("stages")) count.add_list(*stages);
  for (const StageValue& each : kOpTimes) count.add(root.find(each.name));
  for (const char* key : {"optimizer", "reduce_grad", "unshard", "weight_bytes"})
    count.add(root.find(key));
  if (const auto bytes = root.find("activation_bytes")) {
    count.add(bytes);
    if (bytes->is_object())
      for (const StageValue& each : kActivations) count.add(bytes->find(key_of(each)));
  }
  if (const auto message = root.find("message")) {
    count.add(message->find("latency"));
    count.add(message->find("bytes"));
  }
  return count;
}

}  // namespace

StageEntry read_stage(const JsonNode& node) {
  StageDraft draft;
  ListLengths lengths;
  read_own_values(node, draft, lengths);
  for (const StageValue& each : kMessageValues)
    if (const auto member = node.find(each.name))
      member->refuse("is a value that only /stages may have; leave it out");
  if (!draft.lists.empty())
    node.refuse(
        "has lists, which only the stages themselves may have; give values that all micro-batches "
        "share");
  if (draft.parts.any() || draft.parts.pair_order)
    node.refuse("has parts of ops, which only the stages themselves may have; give times");
  expect_complete(node, node, draft);
  return draft.entry;
}

void read_stages(const JsonNode& root, CostTable& costs) {
  const StageCount counted = count_stages(root);
  const std::optional<std::size_t> count = counted.count();
  const auto stages = root.find("stages");
  if (!stages) costs.places.objects.clear();
  costs.places.counted_by = counted.where();
  costs.places.activations_in_root = root.find("activation_bytes").has_value();
  if (!stages && !find_value(root, "forward")) root.at("stages");
  if (stages && stages->size() == 0) stages->refuse("is empty; give one object per stage");
  costs.same_stages = !count;
  ListLengths lengths;
  bool any_list = false;
  bool any_parts = false;
  std::int64_t parts = 0;
  for (std::size_t stage = 0; stage < count.value_or(1); ++stage) {
    std::optional<JsonNode> own;
    if (stages) own.emplace((*stages)[stage]);
    StageDraft draft = read_stage(root, own, stage, costs.parts.contention, lengths);
    any_list = any_list || !draft.lists.empty();
    costs.stages.push_back(std::move(draft.entry));
    costs.lists.push_back(std::move(draft.lists));
    any_parts = any_parts || draft.parts.any();
    for (const OpParts& op : draft.parts.of_kind)
      parts += std::int64_t{op.layers} * static_cast<std::int64_t>(op.parts.size());
    if (parts > kMaxPartsOfFile)
      root.refuse(fmt::format(
          "has more than {} parts over its stages; fold layers into one, with the times of all",
          kMaxPartsOfFile));
    costs.parts.stages.push_back(std::move(draft.parts));
  }
  if (any_list && any_parts)
    root.refuse(
        "has values that differ by micro-batch or slice, and parts of ops, which are the same for "
        "all; leave one of them out");
  if (!any_list) costs.lists.clear();
  if (!any_parts) costs.parts.stages.clear();
}

}  // namespace bubblescope::traces
