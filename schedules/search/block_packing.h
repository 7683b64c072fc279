// Warm-ups and cool-downs of V-shaped building blocks, packed without raising the peak (Qi et al.,
// "Pipeline Parallelism with Controllable Memory", 2024, section 3.3).
#pragma once

#include "schedules/search/building_blocks.h"

namespace bubblescope {

/// The block's passes and W in their slots, of which warm-up and cool-down leave many empty: there,
/// slot by slot, every op moves to the first empty slot behind its inputs; an F no further than all
/// slots on its way have room for one chunk more under the rank's cap. Between rank 0's first I of
/// chunk 0 and its last F of chunk 0, where the blocks fill each other's gaps, nothing moves.
/// Split backwards only.
TokenOrder packed_order(const SearchProblem& problem, const BuildingBlock& block);

/// The same without the W.
Skeleton without_weights(const TokenOrder& order);

}  // namespace bubblescope
