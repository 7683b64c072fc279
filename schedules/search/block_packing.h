// Warm-ups and cool-downs of V-shaped building blocks, packed without raising the peak (Qi et al.,
// "Pipeline Parallelism with Controllable Memory", 2024, section 3.3).
#pragma once

#include "schedules/search/building_blocks.h"

namespace bubblescope::schedules {

/// The order of the block's passes and W, packed. Warm-up and cool-down leave many slots empty:
/// there, slot by slot, every op moves to the first empty slot after its inputs, and an F only so
/// far that all slots in between have memory for one more chunk under the rank's cap. Between rank
/// 0's first I of chunk 0 and its last F of chunk 0, where blocks interlock, nothing moves. Split
/// backwards only.
TokenOrder pack_block(const SearchProblem& problem, const BuildingBlock& block);

/// Removes the W.
Skeleton remove_weights(const TokenOrder& order);

}  // namespace bubblescope::schedules
