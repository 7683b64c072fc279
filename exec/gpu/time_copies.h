// How long messages of several sizes take from one rank to its neighbour, while nothing else runs.
#pragma once

#include <vector>

#include "exec/gpu/calls.h"
#include "exec/job.h"

namespace bubblescope {

/// Medians, by ascending size. `calls` is not copied. Throws Error; needs two ranks.
std::vector<MessageTime> time_copies(const BubblescopeGpu& calls, std::int32_t ranks, Share share);

}  // namespace bubblescope
