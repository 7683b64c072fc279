// Replay: runs the measured order with the measured durations under the simulator's rules.
#pragma once

#include <vector>

#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// The duration of every instruction.
std::vector<Nanos> collect_durations(const Timeline& timeline);

/// Simulates the step with the durations of `timeline`. Time that is missing from the replay
/// belongs to no op and no message: launches, the host, clocks.
Timeline replay(const Program& program, const Timeline& timeline);

/// |makespan of the replay - measured makespan| / measured makespan.
double replay_error(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::inline sim
