// How long messages of several sizes take from one rank to its neighbour, or to the host, while
// nothing else runs.
#pragma once

#include <vector>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/job.h"

namespace bubblescope {

/// Medians, by ascending size. `calls` is not copied. Throws Error; needs two ranks.
std::vector<MessageTime> time_copies(const BubblescopeGpu& calls, std::int32_t ranks, Share share);

/// The same from rank 0 to the host's memory; one rank will do.
std::vector<MessageTime> time_host_copies(const BubblescopeGpu& calls, std::int32_t ranks,
                                          Share share);

}  // namespace bubblescope
