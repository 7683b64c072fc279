// Steps at the beginning of a recording that take far longer than the others: kernels are compiled,
// connections made and memory allocated.
#pragma once

#include <optional>
#include <vector>

#include "traces/measured/assemble_steps.h"
#include "traces/reports/iterations.h"

namespace bubblescope::tools {

/// Leaves out the first steps as long as each takes over 1.5 times as long as the median one, if
/// they are at most a quarter of the steps. The report begins with them.
traces::AssembledSteps separate_warmup_steps(traces::AssembledSteps read);

/// The times from the last op of a step to the first op of the next one, on whatever replica; empty
/// where no two recorded steps follow each other.
std::optional<traces::BetweenSteps> measure_between_steps(
    const std::vector<traces::MeasuredStep>& steps);

}  // namespace bubblescope::tools
