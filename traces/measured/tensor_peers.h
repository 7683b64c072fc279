// Tensor-parallel ranks, which run the same ops at the same time, so that the first of them
// represents all.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

/// The note on the ranks that are not shown.
inline constexpr const char* kFirstOfTensorRanks =
    "of tensor-parallel ranks, which run in lockstep, the first is shown";

/// The note on ranks that are only taken for tensor-parallel ones: `ranks` says which.
///   ranks (0, 1), (2, 3) run every op at the same time, so they count as tensor-parallel, of which
///   the first is shown; state args.dp_rank if they are replicas
std::string describe_assumed_peers(const std::string& ranks);

/// Whether two ranks run every op at the same time, but for a hundredth of it.
/// `apart` is by how much the clock of the right one is ahead. The ops of both are in one order.
bool run_in_step(std::span<const TimeSpan> left, std::span<const TimeSpan> right, Nanos apart);

/// The spans of every recorder's compute ops, by start.
std::vector<std::vector<TimeSpan>> list_spans(const ObservedTrace& trace);

/// Keeps the first rank of every tensor-parallel group, if all recorders have a number in theirs.
/// Ranks that count through the job are then counted by groups. Adds a reservation where the ranks
/// of a group do not run in step.
ObservedTrace without_tensor_peers(ObservedTrace trace);

}  // namespace bubblescope::traces
