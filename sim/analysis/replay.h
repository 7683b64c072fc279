// Replay: runs the measured order with the measured durations under the simulator's rules.
#pragma once

#include <vector>

#include "sim/ir/timeline.h"

namespace bubblescope::inline sim {

/// Returns the duration of every instruction.
std::vector<Nanos> collect_durations(const Timeline& timeline);

/// Simulates the step with the durations of `timeline`. The difference to the measured makespan is
/// time that belongs to no op and no message, such as kernel launches, host work or clock errors.
Timeline replay(const Program& program, const Timeline& timeline);

/// Returns |makespan of the replay - measured makespan| / measured makespan. The gap before an op
/// counts as explained if the message with its input had to wait until the previous op of the rank
/// ended.
double replay_error(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::inline sim
