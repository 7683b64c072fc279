// Steps that lack ops, or a replica.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/measured/assemble_steps.h"

namespace bubblescope::traces {

/// Removes the steps with these numbers, which are sorted.
AssembledSteps without_steps(AssembledSteps read, const std::vector<std::int64_t>& numbers);

/// Whether the step did not complete.
bool is_broken(const MeasuredStep& step);

/// Leaves out incomplete steps. If no step is complete, marks them all instead.
AssembledSteps separate_incomplete_steps(AssembledSteps read);

/// Leaves out steps that lack a replica, if they are the fewer ones: replicas wait for each other,
/// so that causes are sought in steps that have all of them.
AssembledSteps separate_partial_steps(AssembledSteps read);

/// Leaves out the steps that a replay of their own ops does not explain, where these may be of two
/// steps. If they are more than a quarter of all, they stay, and are a fault.
AssembledSteps separate_unexplained_steps(AssembledSteps read);

}  // namespace bubblescope::traces
