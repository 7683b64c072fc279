// Clock sync: all processes agree on the moment at which a step begins, although the clocks of
// their hosts differ.
//
// Each process asks rank 0 for its time a number of times. The answer with the shortest round trip
// gives the offset between the two clocks, which is off by at most half that round trip:
//
//   asked 1,000, rank 0 answered 5,000, received 1,200  =>  offset -3,900, error 100
//
// When all processes know their offsets, rank 0 sends them the time of the beginning.
#pragma once

#include <optional>
#include <vector>

#include "exec/runtime/transport.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// One reading of rank 0's clock.
struct ClockSample {
  Nanos asked = 0;
  Nanos there = 0;
  Nanos answered = 0;

  Nanos took() const { return answered - asked; }
};

/// The difference between this process's monotonic clock and rank 0's.
struct ClockOffset {
  Nanos ahead = 0;  ///< this clock minus rank 0's
  Nanos error = 0;  ///< the largest possible error of `ahead`
};

/// The offset from the sample with the shortest round trip, taking rank 0's reading to be from its
/// middle. Needs at least one sample.
ClockOffset find_clock_offset(const std::vector<ClockSample>& samples);

struct StepBegin {
  Nanos time = 0;  ///< the same moment for all processes, by this process's clock
  ClockOffset clock;
};

/// Every process must call this. Empty if a process is gone, or had not answered when
/// `should_abort` became true.
std::optional<StepBegin> agree_on_begin(Transport& transport, const ShouldAbort& should_abort);

}  // namespace bubblescope::exec
