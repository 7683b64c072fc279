// Measures how long messages of several sizes take from a rank to its neighbour, or to the host, on
// an idle machine.
#pragma once

#include <vector>

#include "exec/gpu/calls.h"
#include "exec/gpu/host/place_ranks.h"
#include "exec/runtime/message_time.h"

namespace bubblescope::exec {

/// Returns medians, in ascending order of size. `calls` is not copied. Throws Error; needs two
/// ranks.
std::vector<MessageTime> time_copies(const BubblescopeGpu& calls, std::int32_t ranks, Share share);

/// Measures copies from rank 0 to host memory; one rank is enough.
std::vector<MessageTime> time_host_copies(const BubblescopeGpu& calls, std::int32_t ranks,
                                          Share share);

}  // namespace bubblescope::exec
