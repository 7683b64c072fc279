// Offloading: activations wait for their backward in the host's memory.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope {

struct OffloadPlan {
  /// Of the forwards of a rank, how many are evicted: those that wait longest for
  /// their backward.
  Millionths share = kWhole;
  /// Compute ops beside which a copy may run before anybody waits for it.
  std::int32_t ops_per_copy = 1;
};

/// Puts an EVICT behind the forwards that wait long enough for it to be of use, and a LOAD before
/// their R or backward. With k ops per copy, k ops after the forward its memory must be free, and k
/// ops before the backward it is taken again. For k = 1, on rank 0 of 1F1B with p = 4:
///   0F0 0F1 0EVICT0 0F2 0EVICT1 0LOAD0 0F3 0B0 ...
/// The result is validated again. Throws Error where the schedule evicts already, posts its
/// messages, runs forwards jointly or has no backward.
ValidSchedule with_offload(ValidSchedule schedule, const OffloadPlan& plan);

}  // namespace bubblescope
