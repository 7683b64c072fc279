// Steps at the beginning of a recording that take far longer than the others: kernels are compiled,
// connections made and memory allocated.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "traces/measured/assemble_steps.h"

namespace bubblescope::traces {

/// Returns the makespan of the slowest replica, by the number of the step.
std::map<std::int64_t, Nanos> collect_makespans(const std::vector<MeasuredStep>& steps);

/// Leaves out the first steps as long as each takes over 1.5 times as long as the median one, if
/// they are at most a quarter of the steps. The report begins with them.
AssembledSteps separate_warmup_steps(AssembledSteps read);

}  // namespace bubblescope::traces
