// Finds ops that may be of several chunks per rank although none is stated, such as Megatron-LM's
// forward_step and backward_step, or ops whose numbers count the calls of a rank in all its chunks.
//
// With several chunks, every rank runs two forwards fewer than the one before it before its first
// backward, and the last one more than one. No schedule of one stage per rank does both.
//
// The interleaved schedule of v chunks, with as many micro-batches as ranks, runs v p forwards and
// then v p backwards on every rank, as GPipe with v p micro-batches does. Only times and messages
// tell them apart: in the interleaved one, the first rank needs the results of the last one for its
// second chunk, and the last rank those of the first one on the way back. Between forward k and
// forward k + p of a rank, every rank runs one forward of the same micro-batch:
//   rank 0   F0 F1                the clocks of ranks differ, yet F2 of rank 0, p = 2 later, begins
//   rank 1      F0 F1             at least F0 of rank 0 and F0 of rank 1 after F0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/ops_in_order.h"

namespace bubblescope::traces {

/// Counts the forwards before the first backward in the first step of a rank's compute ops.
std::int32_t count_warmup(const OpsInOrder& ops);

/// The compute ops of every rank, by start.
using OpsOfRanks = std::vector<OpsInOrder>;

/// Evidence on the number of chunks besides the ops of single ranks.
struct ChunkEvidence {
  bool share_one_clock = false;  ///< all ranks
  bool lack_messages = false;    ///< messages were recorded, but none from the last rank to rank 0
};

/// Says that the number of chunks is open; nullopt where it is stated, or follows from the order,
/// from the times or from messages.
std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks,
                                                const ChunkEvidence& evidence);

/// The same for the fullest step of a trace, with its messages; [recorder] -> rank. Ranks of one
/// file share a clock.
std::optional<std::string> describe_open_chunks(const ObservedTrace& trace,
                                                const std::vector<std::int32_t>& rank_of_recorder);

}  // namespace bubblescope::traces
