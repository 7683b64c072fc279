// Looks up the values of one micro-batch or slice.
#include "sim/model/cost_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/ir/error.h"
#include "sim/model/message_costs.h"

namespace bubblescope::inline sim {

namespace {

MemoryDelta with_saved(const MemoryDelta& delta, Bytes saved) {
  return {saved, delta.input_grad, -saved - delta.input_grad};
}

MemoryDelta with_released(const MemoryDelta& delta, Bytes released) {
  return {delta.forward, -released, released - delta.forward};
}

/// Divides all values of an entry evenly and keeps those of one slice.
StageEntry divide(StageEntry entry, std::int32_t slices, std::int32_t slice) {
  entry.forward = part_of(entry.forward, slices, slice);
  for (auto* time : {&entry.backward, &entry.input_grad, &entry.weight_grad, &entry.recompute,
                     &entry.selective_recompute, &entry.overlapped_pair, &entry.evict, &entry.load,
                     &entry.evict_to_rank, &entry.load_from_rank})
    if (*time) *time = part_of(**time, slices, slice);
  for (auto* bytes : {&entry.checkpoint, &entry.selective_checkpoint})
    if (*bytes) **bytes /= slices;
  if (auto& delta = entry.activation_bytes) {
    const Bytes saved = delta->forward / slices;
    const Bytes released = -delta->input_grad / slices;
    *delta = {saved, -released, released - saved};
  }
  return entry;
}

}  // namespace

std::int64_t CostList::of_sequence(std::int32_t microbatch) const {
  const std::int64_t count = std::max(slices, 1);
  const auto first = values.begin() + std::int64_t{microbatches == 0 ? 0 : microbatch} * count;
  return std::accumulate(first, first + count, std::int64_t{0});
}

std::int64_t CostList::mean() const {
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  return std::llround(sum / std::max(microbatches, 1));
}

std::int64_t CostList::largest() const {
  std::int64_t largest = 0;
  for (std::int32_t microbatch = 0; microbatch < std::max(microbatches, 1); ++microbatch)
    largest = std::max(largest, of_sequence(microbatch));
  return largest;
}

void set_value(StageEntry& entry, CostKey key, std::int64_t value) {
  const MemoryDelta bytes = entry.activation_bytes.value_or(MemoryDelta{0, 0, 0});
  switch (key) {
    case CostKey::kForward: entry.forward = value; return;
    case CostKey::kBackward: entry.backward = value; return;
    case CostKey::kInputGrad: entry.input_grad = value; return;
    case CostKey::kWeightGrad: entry.weight_grad = value; return;
    case CostKey::kRecompute: entry.recompute = value; return;
    case CostKey::kSelectiveRecompute: entry.selective_recompute = value; return;
    case CostKey::kOverlappedPair: entry.overlapped_pair = value; return;
    case CostKey::kEvict: entry.evict = value; return;
    case CostKey::kLoad: entry.load = value; return;
    case CostKey::kEvictToRank: entry.evict_to_rank = value; return;
    case CostKey::kLoadFromRank: entry.load_from_rank = value; return;
    case CostKey::kSaved: entry.activation_bytes = with_saved(bytes, value); return;
    case CostKey::kReleasedByInputGrad:
      entry.activation_bytes = with_released(bytes, value);
      return;
    case CostKey::kCheckpoint: entry.checkpoint = value; return;
    case CostKey::kSelectiveCheckpoint: entry.selective_checkpoint = value; return;
    case CostKey::kMessageBytes: entry.message_bytes = value; return;
    case CostKey::kMessageLatency: entry.message_latency = value; return;
  }
}

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

StageEntry entry_of_sequence(const CostTable& table, std::int32_t stage, std::int32_t microbatch) {
  StageEntry entry = table.stages[static_cast<std::size_t>(stage) % table.stages.size()];
  for (const CostList& list : lists_of(table, stage))
    set_value(entry, list.key, list.of_sequence(microbatch));
  return entry;
}

StageEntry entry_of_slice(const CostTable& table, std::int32_t stage, std::int32_t microbatch,
                          std::int32_t slices, std::int32_t slice) {
  StageEntry entry = divide(entry_of_sequence(table, stage, microbatch), slices, slice);
  for (const CostList& list : lists_of(table, stage))
    if (list.slices > 0) set_value(entry, list.key, list.at(microbatch, slice));
  return entry;
}

void expect_list_lengths(const CostTable& table, const Schedule& schedule) {
  const auto expect = [&](const std::string& where, const char* per, std::int32_t given,
                          std::int32_t needed, const char* flag) {
    if (given == 0 || given == needed) return;
    throw Error(
        fmt::format("{}: {}: has {} entries, one {}, but {} has {} ({}); give one entry for each",
                    table.file, where, given, per, schedule.name, needed, flag));
  };
  for (const std::vector<CostList>& lists : table.lists)
    for (const CostList& list : lists) {
      expect(list.where, "per micro-batch", list.microbatches, schedule.shape.microbatches,
             "`microbatches`");
      expect(list.where + (list.microbatches > 0 ? "/0" : ""), "per slice", list.slices,
             schedule.shape.slices, "`slices`");
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
