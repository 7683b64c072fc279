// How far two processes' clocks are apart, by asking.
#pragma once

#include <vector>

#include "sim/ir/units.h"

namespace bubblescope {

/// A question to rank 0's clock: when it was asked and answered here, what the answer was.
struct ClockSample {
  Nanos asked = 0;
  Nanos there = 0;
  Nanos answered = 0;

  Nanos took() const { return answered - asked; }
};

/// The one that took least time. Needs one at least.
ClockSample quickest(const std::vector<ClockSample>& samples);

/// How far this clock is ahead of rank 0's: of the quickest sample, in whose middle the answer is
/// taken to have been given. Off by half the time that it took at most.
Nanos find_clock_offset(const std::vector<ClockSample>& samples);

}  // namespace bubblescope
