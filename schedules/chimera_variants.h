// Chimera's two ways to make a forward as long as a backward: its slots then fit, and no bubble is
// left in the middle. In both, two forwards run as one and their backwards one by one.
#pragma once

#include "sim/model/schedule_def.h"

namespace bubblescope {

/// Chimera's order for `request` with every op replaced by two, as `parts` says what the n-th of
/// them is.
Schedule build_chimera_of_pairs(const ScheduleRequest& request, Op (*part)(Op op, int n));

/// The activations of chimera, of which two are taken at a time: p/2 + 1 + min(d, p-1-d) pairs.
std::vector<std::int64_t> peaks_of_pairs(std::int32_t ranks);

}  // namespace bubblescope
