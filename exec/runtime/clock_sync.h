// One time for all processes of a step, however their hosts' clocks differ: each asks rank 0's
// clock a number of times, then rank 0 says when the step begins.
#pragma once

#include <optional>
#include <vector>

#include "exec/runtime/transport.h"
#include "sim/ir/units.h"

namespace bubblescope::exec {

/// A question to rank 0's clock: when it was asked and answered here, and what the answer was.
struct ClockSample {
  Nanos asked = 0;
  Nanos there = 0;
  Nanos answered = 0;

  Nanos took() const { return answered - asked; }
};

/// How this process's monotonic clock differs from rank 0's.
struct ClockOffset {
  Nanos ahead = 0;
  Nanos error = 0;  ///< it is off by this much at most
};

/// The offset by the quickest sample, in whose middle the answer is taken to have been given: it is
/// off by half the time that it took at most. Needs one sample at least.
ClockOffset find_clock_offset(const std::vector<ClockSample>& samples);

struct StepBegin {
  Nanos time = 0;  ///< the same moment for all, on this process's clock
  ClockOffset clock;
};

/// All processes call this. Empty where one of them is gone, or had not answered when
/// `should_abort` became true.
std::optional<StepBegin> agree_on_begin(Transport& transport, const ShouldAbort& should_abort);

}  // namespace bubblescope::exec
