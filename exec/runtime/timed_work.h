// Work without mathematics: it plays a cost model in real time, to test the executor itself.
#pragma once

#include <span>

#include "exec/runtime/backend.h"

namespace bubblescope {

/// Instruction id takes durations[id]; one without a lane is a pure delay. Nothing is copied.
///
/// kSleep needs no core and keeps time: an op ends its duration after the last thing that it waited
/// for should have ended, so that a thread that was woken late shows in the Timeline and delays no
/// other, unless it is later than the op is long.
/// kSpin keeps its core busy for the whole duration, from when it really starts.
Work play(const Program& program, std::span<const Nanos> durations, Pass pass);

}  // namespace bubblescope
