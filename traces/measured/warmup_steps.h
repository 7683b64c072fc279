// Steps at the beginning of a recording that take far longer than the others: kernels are compiled,
// connections made and memory allocated.
#pragma once

#include "traces/measured/assemble_steps.h"

namespace bubblescope::traces {

/// Leaves out the first steps as long as each takes over 1.5 times as long as the median one, if
/// they are at most a quarter of the steps. The report begins with them.
AssembledSteps separate_warmup_steps(AssembledSteps read);

}  // namespace bubblescope::traces
