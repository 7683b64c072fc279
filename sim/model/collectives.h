// Collectives of a group of devices.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/model/gpu.h"

namespace bubblescope::inline sim {

/// The time in which NCCL passes data on in a ring, with its protocol for large messages
/// (ncclTopoTuneModel in its src/graph/tuning.cc).
inline constexpr Nanos kRingStepInside = 3'400;    ///< to a device of the same node
inline constexpr Nanos kRingStepOutside = 14'000;  ///< to another node

/// The link that each member of a group uses in a collective.
struct GroupLink : Link {
  /// The time of a ring's steps alone, once around the group; 0: steps of `latency` count.
  Nanos ring_latency = 0;

  GroupLink(Link link, Nanos around = 0) : Link(link), ring_latency(around) {}  // also from a link
};

/// Returns the time of a collective over `ranks` ranks with `bytes` each, for the faster of ring
/// and tree. Ring all-reduce: 2 (n-1)/n bytes over the link and 2 (n-1) latencies; tree: 2 bytes
/// and 2 log2(n) latencies. Reduce-scatter and all-gather take half a ring, or `pieces` of them
/// with these bytes in all.
Nanos estimate_all_reduce_time(double bytes, std::int32_t ranks, const GroupLink& link);
Nanos estimate_all_gather_time(double bytes, std::int32_t ranks, const GroupLink& link,
                               double pieces = 1);
/// Returns the time of an all-to-all: every rank keeps 1/n of its bytes and sends the rest
/// pairwise.
Nanos estimate_all_to_all_time(double bytes, std::int32_t ranks, const Link& link);

}  // namespace bubblescope::inline sim
