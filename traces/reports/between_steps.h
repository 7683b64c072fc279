// The time between recorded steps.
#pragma once

#include <optional>
#include <vector>

#include "traces/measured/assemble_steps.h"
#include "traces/reports/iterations.h"

namespace bubblescope::traces {

/// The times from the last op of a step to the first op of the next one, on whatever replica; empty
/// where no two recorded steps follow each other.
std::optional<BetweenSteps> measure_between_steps(const std::vector<MeasuredStep>& steps);

}  // namespace bubblescope::traces
