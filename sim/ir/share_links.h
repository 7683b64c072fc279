// Ranks that share a link to their host's memory.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"

namespace bubblescope {

/// Lets the copies of `ranks_per_link` neighbouring ranks take turns, each direction for itself:
/// each waits for the one before it. Whoever comes first in a step of equal ops goes first, so the
/// turns are fixed and do not depend on costs. Copies to another rank's memory share nothing.
Program share_host_links(const Program& program, std::int32_t ranks_per_link);

}  // namespace bubblescope
