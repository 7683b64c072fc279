// Looks up the values of one micro-batch or slice.
#include "sim/model/cost_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/model/message_costs.h"

namespace bubblescope::inline sim {

namespace {

/// Divides all values of an entry evenly and keeps those of one slice.
StageEntry divide(StageEntry entry, std::int32_t slices, std::int32_t slice) {
  entry.forward = part_of(entry.forward, slices, slice);
  for (const StageValue& value : kOpTimes.subspan(1))
    if (auto& time = entry.*value.member) time = part_of(*time, slices, slice);
  for (auto* bytes : {&entry.checkpoint, &entry.selective_checkpoint})
    if (*bytes) *bytes = part_of(**bytes, slices, slice);
  if (auto& delta = entry.activation_bytes) {
    const Bytes saved = part_of(delta->forward, slices, slice);
    const Bytes released = part_of(-delta->input_grad, slices, slice);
    *delta = {saved, -released, released - saved};
  }
  return entry;
}

/// Whether the values of any of these keys differ between slices.
bool any_varies_by_slice(const std::vector<CostList>& lists, std::initializer_list<CostKey> keys) {
  return std::any_of(lists.begin(), lists.end(), [&](const CostList& list) {
    return list.slices > 0 && std::find(keys.begin(), keys.end(), list.key) != keys.end();
  });
}

}  // namespace

const std::vector<CostList>& lists_of(const CostTable& table, std::int32_t stage) {
  static const std::vector<CostList> none;
  if (table.lists.empty()) return none;
  return table.lists[static_cast<std::size_t>(stage) % table.lists.size()];
}

bool varies_by_microbatch(const std::vector<CostList>& lists) {
  return std::any_of(lists.begin(), lists.end(),
                     [](const CostList& list) { return list.microbatches > 0; });
}

bool varies_by_slice(const std::vector<CostList>& lists) {
  return std::any_of(lists.begin(), lists.end(),
                     [](const CostList& list) { return list.slices > 0; });
}

bool copies_vary_by_slice(const std::vector<CostList>& lists) {
  return any_varies_by_slice(
      lists, {CostKey::kEvict, CostKey::kLoad, CostKey::kEvictToRank, CostKey::kLoadFromRank,
              CostKey::kSaved, CostKey::kCheckpoint, CostKey::kSelectiveCheckpoint});
}

StageEntry entry_of_sequence(const CostTable& table, std::int32_t stage, std::int32_t microbatch) {
  StageEntry entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
  for (const CostList& list : lists_of(table, stage))
    set_value(entry, list.key, list.of_sequence(microbatch));
  return entry;
}

StageEntry entry_of_slice(const CostTable& table, std::int32_t stage, std::int32_t microbatch,
                          std::int32_t slices, std::int32_t slice) {
  const StageEntry whole = entry_of_sequence(table, stage, microbatch);
  const std::vector<CostList>& lists = lists_of(table, stage);
  StageEntry entry = divide(whole, slices, slice);
  const std::optional<Nanos> backward = full_backward(whole);
  if (backward && !any_varies_by_slice(lists, {CostKey::kInputGrad, CostKey::kWeightGrad}))
    entry.backward = part_of(*backward, slices, slice);
  for (const CostList& list : lists)
    if (list.slices > 0) set_value(entry, list.key, list.at(microbatch, slice));
  return entry;
}

void expect_list_lengths(const CostTable& table, const Schedule& schedule) {
  const auto expect = [&](const std::string& where, const char* per, std::int32_t given,
                          std::int32_t needed, const char* noun) {
    if (given == 0 || given == needed) return;
    throw Error(fmt::format("{}: {}: has {}, one {}, but {} has {}; give one entry for each",
                            table.file, where, counted(given, "entry"), per, schedule.name,
                            counted(needed, noun)));
  };
  for (const std::vector<CostList>& lists : table.lists)
    for (const CostList& list : lists) {
      expect(list.where, "per micro-batch", list.microbatches, schedule.shape.microbatches,
             "micro-batch");
      expect(list.where + (list.microbatches > 0 ? "/0" : ""), "per slice", list.slices,
             schedule.shape.slices, "slice");
    }
}

MessageEntry message_entry(const CostTable& table, const Op& op) {
  const StageEntry& base = table.stages[static_cast<std::size_t>(op.stage) % table.stages.size()];
  MessageEntry message{base.message_latency, base.message_bytes};
  for (const CostList& list : lists_of(table, op.stage)) {
    if (list.key == CostKey::kMessageLatency) message.latency = list.at(op.microbatch, op.slice);
    if (list.key == CostKey::kMessageBytes) message.bytes = list.at(op.microbatch, op.slice);
  }
  return message;
}

bool has_message_entries(const CostTable& table) {
  return std::any_of(table.stages.begin(), table.stages.end(), [](const StageEntry& entry) {
    return entry.message_latency || entry.message_bytes;
  });
}

CostTensor<MessageSizes> make_message_sizes(const CostTable& table, const Schedule& schedule,
                                            const Cluster& cluster) {
  if (!has_message_entries(table)) return {};
  return make_message_tensor<MessageSizes>(
      schedule, has_lists(table), [&](MessageSizes& sizes, const StageMessage& message) {
        raise_to(message.forward ? sizes.forward : sizes.backward,
                 message_entry(table, message.producer)
                     .bytes.value_or(cluster.bytes(message.from, message.to)));
      });
}

}  // namespace bubblescope::inline sim
