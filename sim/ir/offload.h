// Offloading: moves activations to the host's memory until their backward needs them.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"
#include "sim/ir/valid_schedule.h"

namespace bubblescope::inline sim {

struct OffloadPlan {
  /// The fraction of a rank's forwards that are evicted: first those that lower its peak, then
  /// those that wait longest for their backward.
  Millionths share = kWhole;
  /// Compute ops during which a copy may run before anything waits for it.
  std::int32_t ops_per_copy = 1;
};

/// Adds an EVICT after each forward that waits long enough for its backward, and a LOAD before its
/// R or backward. With k ops per copy, memory must be free k ops after the forward, and is taken
/// again k ops before the backward. For k = 1, on rank 0 of 1F1B with p = 4:
///   0F0 0F1 0EVICT0 0F2 0EVICT1 0LOAD0 0F3 0B0 ...
/// The result is validated again. Throws Error if the schedule evicts already, posts its messages,
/// fuses forwards or has no backward.
ValidSchedule with_offload(ValidSchedule schedule, const OffloadPlan& plan);

/// Whether the copies of a schedule lower the peak of the rank that would hold the most forwards
/// without them.
bool lowers_peak(const Schedule& schedule);

}  // namespace bubblescope::inline sim
