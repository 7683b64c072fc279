// One time for all processes of a step, however their hosts' clocks stand: each asks rank 0's clock
// a number of times, then rank 0 says when the step begins.
#pragma once

#include <optional>

#include "exec/nccl/process_link.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// How this process's monotonic clock stands to rank 0's.
struct ClockOffset {
  Nanos ahead = 0;
  Nanos error = 0;  ///< it is off by this much at most: half of the quickest answer's way
};

struct StepBegin {
  Nanos time = 0;  ///< the same moment for all, on this process's clock
  ClockOffset clock;
};

/// All processes call this. Empty where one of them is gone, or had not answered when `gives_up`
/// became true.
std::optional<StepBegin> agree_on_begin(ProcessLink& link, const ProcessLink::GivesUp& gives_up);

}  // namespace bubblescope
