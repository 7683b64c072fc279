// Chimera's two ways to make a forward as long as a backward, which removes the bubble in the
// middle. In both, two forwards are fused and their backwards stay separate.
#pragma once

#include "sim/model/schedule_def.h"

namespace bubblescope::schedules {

/// Chimera's order for `request`, with every op replaced by two: `part` returns the n-th of them.
Schedule build_chimera_of_pairs(const ScheduleRequest& request, Op (*part)(Op op, int n));

/// Peak activations in pairs, because chimera allocates two at a time: p/2 + 1 + min(d, p-1-d)
/// pairs.
std::vector<std::int64_t> count_pair_peaks(std::int32_t ranks);

}  // namespace bubblescope::schedules
