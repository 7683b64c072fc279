// Finds ops that may be of several chunks per rank although none is stated, such as Megatron-LM's
// forward_step and backward_step.
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

namespace bubblescope::traces {

/// The forwards before the first backward in the first step of a rank's compute ops.
std::int32_t count_warmup(const std::vector<const ObservedOp*>& ops);

/// The compute ops of every rank, by start.
using OpsOfRanks = std::vector<std::vector<const ObservedOp*>>;

/// Says that the number of chunks is open; nullopt where it is stated, or follows from the order,
/// or from the times if the ranks share one clock.
std::optional<std::string> describe_open_chunks(const OpsOfRanks& ranks, bool share_one_clock);

}  // namespace bubblescope::traces
