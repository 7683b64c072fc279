// Work that takes the time a cost model gives it, to test the executor itself.
#pragma once

#include <span>

#include "exec/runtime/backend.h"

namespace bubblescope::exec {

/// Instruction id takes durations[id]. An instruction without a lane is a pure delay. Nothing is
/// copied.
///
/// kSleep needs no core. Its end is computed from the time at which its last dependency should have
/// ended. A thread that wakes up late thus shows in the Timeline but delays no other op, unless it
/// is later than the op is long. kSpin keeps a core busy for the whole duration, counted from the
/// op's real start.
Work play(const Program& program, std::span<const Nanos> durations, WaitMode wait_mode);

}  // namespace bubblescope::exec
