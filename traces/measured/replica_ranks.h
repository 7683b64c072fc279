// Ranks that count through all replicas of a job: 0 and 1 of the first, 2 and 3 of the second.
#pragma once

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Numbers the ranks of replicas that are stated alike, as places in their pipelines, if the number
/// of no rank is in two of them. The stages of ops place them, if all ops state theirs; else the
/// order of their numbers. Throws Error where the replicas have different numbers of ranks, because
/// nothing shows which are missing. Does nothing for ranks that are places, as args.pp_rank is.
ObservedTrace number_within_replicas(ObservedTrace trace);

}  // namespace bubblescope::traces
