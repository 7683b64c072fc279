// Steps at the end of a recording that become longer from one to the next, as where a device begins
// to throttle or memory to run out. Means over many steps hide them, and so does the median step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::traces {

/// Says, in a whole sentence, that the last steps grow: at least three, and at most half of all,
/// each longer than all before it, and the last one over 1.05 times as long as the median. nullopt
/// where they do not. The slowest replica of a step counts.
std::optional<std::string> describe_growing_steps(const std::vector<MeasuredStep>& steps);

}  // namespace bubblescope::traces
