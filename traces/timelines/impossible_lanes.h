// Checks that a timeline from a file is physically possible.
#pragma once

#include <optional>
#include <string>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope::traces {

/// Returns what is wrong with it, if anything: a lane does one thing at a time, so its work cannot
/// take longer than the step (its rank would have negative idle time), and no step lasts for
/// decades. Ops may overlap slightly, because devices' clocks are not exact.
std::optional<std::string> find_impossible_lane(const Program& program, const Timeline& timeline);

}  // namespace bubblescope::traces
