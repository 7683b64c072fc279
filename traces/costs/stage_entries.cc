// Reads the entries of a cost file's stages.
#include "traces/costs/stage_entries.h"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "traces/costs/contention_entry.h"
#include "traces/costs/cost_lists.h"

namespace bubblescope::traces {

namespace {

constexpr JsonKey kSaved{"saved", "kept"};
constexpr JsonKey kContended{"contended", "in_company"};

/// A key of a stage whose value may differ by micro-batch and slice.
struct ListedKey {
  JsonKey name;
  CostKey key;
};

constexpr std::array<ListedKey, 11> kTimes{{{"forward", CostKey::kForward},
                                            {"backward", CostKey::kBackward},
                                            {"input_grad", CostKey::kInputGrad},
                                            {"weight_grad", CostKey::kWeightGrad},
                                            {"recompute", CostKey::kRecompute},
                                            {"selective_recompute", CostKey::kSelectiveRecompute},
                                            {"overlapped_pair", CostKey::kOverlappedPair},
                                            {"evict", CostKey::kEvict},
                                            {"load", CostKey::kLoad},
                                            {"evict_to_rank", CostKey::kEvictToRank},
                                            {"load_from_rank", CostKey::kLoadFromRank}}};

constexpr std::array<ListedKey, 4> kActivations{
    {{kSaved, CostKey::kSaved},
     {"released_by_input_grad", CostKey::kReleasedByInputGrad},
     {"checkpoint", CostKey::kCheckpoint},
     {"selective_checkpoint", CostKey::kSelectiveCheckpoint}}};

/// Only in the object of a stage; in the root they are keys of "message".
constexpr std::array<ListedKey, 2> kMessages{
    {{"message_latency", CostKey::kMessageLatency}, {"message_bytes", CostKey::kMessageBytes}}};

void expect_part_of_saved(const JsonNode& node, JsonKey key, std::optional<Bytes> part,
                          Bytes saved) {
  const auto member = node.find(key);
  const bool is_release = key.name == std::string_view("released_by_input_grad");
  if (member && !is_list(*member) && part.value_or(0) > saved)
    member->refuse("must not exceed /saved: " + std::string(is_release
                                                                ? "nothing else can be released"
                                                                : "it is a part of that"));
}

void read_activation_bytes(const JsonNode& node, StageDraft& draft, ListLengths& lengths) {
  const bool has_parts =
      node.is_object() && !node.find("per_microbatch") && !node.find("per_slice");
  if (!has_parts && draft.in_root) return read_value(node, CostKey::kSaved, draft, lengths);
  node.expect_keys({kSaved, "released_by_input_grad", "checkpoint", "selective_checkpoint"});
  node.at(kSaved);
  for (const ListedKey& each : kActivations)
    if (const auto member = node.find(each.name)) read_value(*member, each.key, draft, lengths);
  const StageEntry& entry = draft.entry;
  const Bytes saved = entry.activation_bytes->forward;
  expect_part_of_saved(node, "released_by_input_grad", -entry.activation_bytes->input_grad, saved);
  expect_part_of_saved(node, "checkpoint", entry.checkpoint, saved);
  expect_part_of_saved(node, "selective_checkpoint", entry.selective_checkpoint, saved);
}

/// Reads the values of a stage from its object, or from the root.
void read_values(const JsonNode& node, StageDraft& draft, ListLengths& lengths) {
  for (const ListedKey& each : kTimes)
    if (const auto member = node.find(each.name)) read_value(*member, each.key, draft, lengths);
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
  node.expect_keys({"forward", "backward", "input_grad", "weight_grad", "recompute",
                    "selective_recompute", "overlapped_pair", "evict", "load", "evict_to_rank",
                    "load_from_rank", "activation_bytes", "optimizer", "reduce_grad", "unshard",
                    "weight_bytes", "message_latency", "message_bytes", kContended});
  read_values(node, draft, lengths);
  for (const ListedKey& each : kMessages)
    if (const auto member = node.find(each.name)) read_value(*member, each.key, draft, lengths);
  const auto times = node.find(kContended);
  if (!times) return;
  if (!draft.lists.empty())
    times->refuse("goes with values that all micro-batches share; leave it or the lists out");
  draft.entry.contended = read_contention(*times);
}

/// Throws Error where the entry is not complete. `node` is the stage's object or the root.
void expect_complete(const JsonNode& node, const StageDraft& draft, bool has_forward) {
  const StageEntry& entry = draft.entry;
  if (!has_forward) node.at("forward");
  if (entry.input_grad.has_value() != entry.weight_grad.has_value())
    node.refuse("has one of 'input_grad' and 'weight_grad'; give both, or neither");
  const auto pair = node.find("overlapped_pair");
  if (pair && draft.lists.empty() && *entry.overlapped_pair < entry.forward)
    pair->refuse("must be at least 'forward', which is a part of it");
}

/// Throws Error where a stage's object and the root give the same value.
void expect_one_place(const JsonNode& root, const JsonNode& own) {
  const auto expect = [&](JsonKey key) {
    const auto member = own.find(key);
    if (member && root.find(key))
      member->refuse("is also in the root of the file, for all stages; remove one of them");
  };
  for (const ListedKey& each : kTimes) expect(each.name);
  for (const char* key :
       {"activation_bytes", "optimizer", "reduce_grad", "unshard", "weight_bytes"})
    expect(key);
}

StageDraft read_stage(const JsonNode& root, const std::optional<JsonNode>& own, std::size_t stage,
                      ListLengths& lengths) {
  StageDraft draft;
  draft.stage = stage;
  draft.in_root = true;
  read_values(root, draft, lengths);
  read_message_values(root, draft, lengths);
  draft.in_root = false;
  if (own) {
    read_own_values(*own, draft, lengths);
    expect_one_place(root, *own);
  }
  const bool has_forward = root.find("forward") || (own && own->find("forward"));
  expect_complete(own ? *own : root, draft, has_forward);
  return draft;
}

/// The number of stages in the root's lists; nullopt without lists.
std::optional<std::size_t> count_stages(const JsonNode& root) {
  StageCount count;
  if (const auto stages = root.find("stages")) count.add_list(*stages);
  for (const ListedKey& each : kTimes) count.add(root.find(each.name));
  for (const char* key : {"optimizer", "reduce_grad", "unshard", "weight_bytes"})
    count.add(root.find(key));
  if (const auto bytes = root.find("activation_bytes")) {
    count.add(bytes);
    if (bytes->is_object())
      for (const ListedKey& each : kActivations) count.add(bytes->find(each.name));
  }
  if (const auto message = root.find("message")) {
    count.add(message->find("latency"));
    count.add(message->find("bytes"));
  }
  return count.count();
}

}  // namespace

StageEntry read_stage(const JsonNode& node) {
  StageDraft draft;
  ListLengths lengths;
  read_own_values(node, draft, lengths);
  for (const ListedKey& each : kMessages)
    if (const auto member = node.find(each.name))
      member->refuse("is a value that only /stages may have; leave it out");
  if (!draft.lists.empty())
    node.refuse("has lists, which only /stages may have; give values that all micro-batches share");
  expect_complete(node, draft, node.find("forward").has_value());
  return draft.entry;
}

void read_stages(const JsonNode& root, CostTable& costs) {
  const std::optional<std::size_t> count = count_stages(root);
  const auto stages = root.find("stages");
  if (!stages && !root.find("forward")) root.at("stages");
  if (stages && stages->size() == 0) stages->refuse("is empty; give one object per stage");
  costs.same_stages = !count;
  ListLengths lengths;
  bool any_list = false;
  for (std::size_t stage = 0; stage < count.value_or(1); ++stage) {
    std::optional<JsonNode> own;
    if (stages) own.emplace((*stages)[stage]);
    StageDraft draft = read_stage(root, own, stage, lengths);
    any_list = any_list || !draft.lists.empty();
    costs.stages.push_back(std::move(draft.entry));
    costs.lists.push_back(std::move(draft.lists));
  }
  if (!any_list) costs.lists.clear();
}

}  // namespace bubblescope::traces
