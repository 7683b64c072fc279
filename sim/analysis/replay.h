// Replaying what was measured: the same order and the same durations under the rule of the machine.
#pragma once

#include <vector>

#include "sim/ir/timeline.h"

namespace bubblescope {

/// How long every instruction took.
std::vector<Nanos> durations_of(const Timeline& timeline);

/// The step as the engine runs it with the durations of `timeline`. What the replay lacks is time
/// that no op and no message accounts for: launches, the host, clocks.
Timeline replay(const Program& program, const Timeline& timeline);

/// |makespan of the replay - measured makespan| / measured makespan.
double replay_error(const Program& program, const Timeline& timeline);

}  // namespace bubblescope
