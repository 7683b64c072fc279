// Finds ranks without a trace where no trace states its rank or the number of ranks, as in Nsight
// Systems' recordings of Megatron-LM and DeepSpeed.
//
// At least one of all messages between two neighbours finds its receiver waiting, and arrives after
// the time that it travels. After a missing rank, each comes later by at least an op of that rank:
// forwards by a forward, backwards by a backward. The two delays are added, so that clocks that are
// apart do not matter. And where no one sends a gradient to the last rank, it does not wait before
// its first backward.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Describes, in a whole sentence, where a rank seems to be missing; nullopt where none does.
std::optional<std::string> describe_missing_neighbours(std::span<const MeasuredStep> steps);

}  // namespace bubblescope::traces
