// Reads values and lists of values.
#include "traces/costs/cost_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/range.h"
#include "traces/costs/part_entries.h"

namespace bubblescope::traces {

namespace {

constexpr const char* kPerMicrobatch = "per_microbatch";
constexpr const char* kPerSlice = "per_slice";

std::int64_t read_number(const JsonNode& node, CostKey key) {
  return stage_value(key).is_size ? node.bytes() : node.duration();
}

/// Expects as many entries as the first list of its kind had.
void expect_length(const JsonNode& list, const char* per, ListLength& length) {
  const std::size_t entries = list.size();
  if (entries == 0) list.refuse(fmt::format("is empty; give one entry per {}", per));
  if (entries > static_cast<std::size_t>(std::numeric_limits<std::int16_t>::max()) * 512)
    list.refuse("has more entries than a step may have micro-batches; give fewer");
  if (length.where.empty()) length = {entries, list.pointer()};
  if (entries != length.entries)
    list.refuse(fmt::format("has {}, but {} has {}; give both one per {}",
                            counted(entries, "entry"), length.where, length.entries, per));
}

void read_slices(const JsonNode& node, CostList& list, ListLengths& lengths) {
  expect_length(node, "slice", lengths.slices);
  list.slices = static_cast<std::int32_t>(node.size());
  for (std::size_t slice = 0; slice < node.size(); ++slice)
    list.values.push_back(read_number(node[slice], list.key));
}

/// Reads a list whose entries are values, or all lists of slices.
void read_microbatches(const JsonNode& node, CostList& list, ListLengths& lengths) {
  expect_length(node, "micro-batch", lengths.microbatches);
  list.microbatches = static_cast<std::int32_t>(node.size());
  list.values.reserve(node.size());
  for (std::size_t microbatch = 0; microbatch < node.size(); ++microbatch) {
    const JsonNode entry = node[microbatch];
    if (microbatch > 0 && entry.is_array() != (list.slices > 0))
      entry.refuse("is a list of slices where others are not; give lists for all or for none");
    if (entry.is_array())
      read_slices(entry, list, lengths);
    else
      list.values.push_back(read_number(entry, list.key));
  }
}

/// Calls read(node, key) with the list of an object {"per_microbatch": ...} for the draft's stage.
template <class Read>
void visit_list(const JsonNode& node, const StageDraft& draft, const Read& read) {
  node.expect_keys({kPerMicrobatch, kPerSlice});
  const bool by_microbatch = node.find(kPerMicrobatch).has_value();
  if (by_microbatch == node.find(kPerSlice).has_value())
    node.refuse(
        "must have either 'per_microbatch' or 'per_slice'; where both differ, make the "
        "entries of 'per_microbatch' lists of slices");
  const JsonNode all = node.at(by_microbatch ? kPerMicrobatch : kPerSlice);
  if (!draft.in_root) return read(all, by_microbatch);
  const JsonNode own = all[draft.stage];
  read(own, by_microbatch);
}

/// Calls read(node) with a value that all micro-batches share.
template <class Read>
auto read_shared(const JsonNode& node, const StageDraft& draft, const Read& read) {
  if (!node.is_array() || !draft.in_root) return read(node);
  const JsonNode own = node[draft.stage];
  return read(own);
}

/// Refuses slices that are too much together.
void expect_countable(const CostList& list, const JsonNode& node) {
  for (std::size_t first = 0; first < list.values.size();) {
    std::int64_t sum = 0;
    for (std::int32_t slice = 0; slice < std::max(list.slices, 1); ++slice, ++first)
      if ((sum += list.values[first]) > kMaxBytes)
        node.refuse(
            "has slices of more than 2^60 bytes or 36 years together; correct their values");
  }
}

}  // namespace

bool is_list(const JsonNode& node) { return node.is_array() || node.is_object(); }

void read_value(const JsonNode& node, CostKey key, StageDraft& draft, ListLengths& lengths) {
  if (has_parts(node)) return read_parts(node, key, draft);
  if (!node.is_object()) {
    if (node.is_array() && !draft.in_root)
      node.refuse("is a list; make it the 'per_microbatch' or 'per_slice' of an object");
    return read_shared(node, draft, [&](const JsonNode& value) {
      if (has_parts(value)) return read_parts(value, key, draft);
      set_value(draft.entry, key, read_number(value, key));
    });
  }
  CostList list;
  list.key = key;
  visit_list(node, draft, [&](const JsonNode& values, bool by_microbatch) {
    list.where = values.pointer();
    by_microbatch ? read_microbatches(values, list, lengths) : read_slices(values, list, lengths);
  });
  expect_countable(list, node);
  set_value(draft.entry, key, stage_value(key).is_size ? list.largest() : list.mean());
  draft.lists.push_back(std::move(list));
}

Nanos read_shared_duration(const JsonNode& node, const StageDraft& draft) {
  return read_shared(node, draft, [](const JsonNode& value) { return value.duration(); });
}

Bytes read_shared_bytes(const JsonNode& node, const StageDraft& draft) {
  return read_shared(node, draft, [](const JsonNode& value) { return value.bytes(); });
}

void StageCount::add(const std::optional<JsonNode>& value) {
  if (!value) return;
  if (value->is_array()) return add_list(*value);
  if (!value->is_object()) return;
  for (const char* key : {kPerMicrobatch, kPerSlice})
    if (const auto list = value->find(key)) add_list(*list);
}

void StageCount::add_list(const JsonNode& list) {
  const std::size_t entries = list.size();
  if (!count_) {
    count_ = entries;
    where_ = list.pointer();
  }
  if (entries != *count_)
    list.refuse(fmt::format("has {}, but {} has {}; give both one per stage",
                            counted(entries, "entry"), where_, *count_));
}

}  // namespace bubblescope::traces
