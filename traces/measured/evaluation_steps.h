// Steps whose backwards compute nothing: PyTorch's schedules run an evaluation (eval()) with the
// order of a training step, and skip what its backwards would do.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "traces/measured/group_steps.h"

namespace bubblescope::traces {

/// Leaves them out where other steps have backwards, and returns how many they were.
std::size_t remove_evaluations(std::map<StepKey, StepOps>& steps);

/// Returns a text such as "2 step(s) left out: ...".
std::string describe_evaluations(std::size_t count);

}  // namespace bubblescope::traces
