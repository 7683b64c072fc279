// Whether a timeline that comes from a file can be one.
#pragma once

#include <optional>
#include <string>

#include "sim/ir/program.h"
#include "sim/ir/timeline.h"

namespace bubblescope {

/// What is wrong with it, if anything: a lane does one thing at a time, so its work takes no longer
/// than the step (else a rank would be idle for less than no time), and no step lasts for decades.
/// Ops may overlap a little, as devices' clocks are not exact.
std::optional<std::string> find_impossible_lane(const Program& program, const Timeline& timeline);

}  // namespace bubblescope
