// One time for all processes of a step, however their hosts' clocks stand.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "exec/mpi_port.h"
#include "sim/ir/units.h"

namespace bubblescope {

/// A question to rank 0's clock: when it was asked and answered here, what the answer was.
struct ClockSample {
  Nanos asked = 0;
  Nanos there = 0;
  Nanos answered = 0;
};

/// How far this clock is ahead of rank 0's: of the sample that took least time, in whose middle the
/// answer is taken to have been given. Off by half that time at most.
Nanos find_clock_offset(const std::vector<ClockSample>& samples);

/// When a step begins, on this process's monotonic clock: the same moment for all, which all call
/// this. Empty where one of them had not answered when `gives_up` became true.
std::optional<Nanos> agree_on_begin(MpiPort& port, const std::function<bool()>& gives_up);

}  // namespace bubblescope
