// Finds ops that may be of several chunks per rank although none is stated, such as Megatron-LM's
// forward_step and backward_step, or ops whose numbers count the calls of a rank in all its chunks.
//
// With several chunks, every rank runs two forwards fewer than the one before it before its first
// backward, and the last one more than one. No schedule of one stage per rank does both.
//
// The interleaved schedule of v chunks, with as many micro-batches as ranks, runs v p forwards and
// then v p backwards on every rank, as GPipe with v p micro-batches does. Only times tell them
// apart: in the interleaved one, the first rank needs the results of the last one for its second
// chunk, and the last rank those of the first one on the way back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/ops_in_order.h"

namespace bubblescope::traces {

/// The forwards before the first backward in the first step of a rank's compute ops.
std::int32_t count_warmup(const OpsInOrder& ops);

/// The compute ops of every rank, by start.
using OpsOfRanks = std::vector<OpsInOrder>;

/// Says that the number of chunks is open; nullopt where it is stated, or follows from the order,
/// or from the times if the ranks share one clock.
std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks, bool share_one_clock);

/// The same for the fullest step of a trace; [recorder] -> rank. Ranks of one file share a clock.
std::optional<std::string> describe_open_chunks(const ObservedTrace& trace,
                                                const std::vector<std::int32_t>& rank_of_recorder);

}  // namespace bubblescope::traces
