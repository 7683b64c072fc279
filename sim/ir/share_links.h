// Host links: adjacent ranks can share one link to the host's memory.
#pragma once

#include <cstdint>

#include "sim/ir/program.h"

namespace bubblescope::inline sim {

/// Serializes the copies of `ranks_per_link` adjacent ranks, separately for each direction: each
/// waits for the previous one. The turns are those of a step with equal ops, so they are fixed and
/// do not depend on costs. Copies to another rank's memory share nothing.
Program share_host_links(const Program& program, std::int32_t ranks_per_link);

}  // namespace bubblescope::inline sim
