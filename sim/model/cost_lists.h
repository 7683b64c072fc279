// Cost lists: the values of a cost file that differ by micro-batch or slice.
//
//   {"forward": {"per_microbatch": [10, 12, 9]}}        one value per micro-batch
//   {"forward": {"per_slice": [6, 4]}}                  slices that are not equal
//   {"forward": {"per_microbatch": [[6, 4], [7, 5]]}}   both
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"
#include "sim/model/cost_table.h"

namespace bubblescope::inline sim {

/// Returns the entry of a stage for one micro-batch with its whole sequence.
StageEntry entry_of_sequence(const CostTable& table, std::int32_t stage, std::int32_t microbatch);

/// The entry for one of the slices of a micro-batch. What the file gives for whole sequences is
/// divided evenly.
StageEntry entry_of_slice(const CostTable& table, std::int32_t stage, std::int32_t microbatch,
                          std::int32_t slices, std::int32_t slice);

/// The lists of a stage; empty where all its micro-batches have the same values.
const std::vector<CostList>& lists_of(const CostTable& table, std::int32_t stage);

/// Whether a stage's values differ between micro-batches, and between slices.
bool varies_by_microbatch(const std::vector<CostList>& lists);
bool varies_by_slice(const std::vector<CostList>& lists);

/// Whether any value that copies depend on differs between slices. Else a slice has its share of
/// the copy of the whole sequence.
bool copies_vary_by_slice(const std::vector<CostList>& lists);

/// Throws Error where a list has too many or too few entries for the schedule.
void expect_list_lengths(const CostTable& table, const Schedule& schedule);

/// The costs of the messages between a stage and the next one, in both directions.
struct MessageEntry {
  std::optional<Nanos> latency;
  std::optional<Bytes> bytes;
};
MessageEntry message_entry(const CostTable& table, const Op& op);

/// Whether any stage says something about its messages.
bool has_message_entries(const CostTable& table);

/// The sizes of all messages; empty if no stage gives any. The others are those of the cluster.
CostTensor<MessageSizes> make_message_sizes(const CostTable& table, const Schedule& schedule,
                                            const Cluster& cluster);

/// Whether the table gives the bytes of any message.
bool knows_message_bytes(const CostTable& table);

/// Returns the sizes of all messages of a table without a cluster.
CostTensor<MessageSizes> find_message_sizes(const CostTable& table, const Schedule& schedule);

/// Sets the times of all messages, without contention.
void set_message_times(CostModel& model, const CostTable& table, const Schedule& schedule);

}  // namespace bubblescope::inline sim
