// Blocks with full backwards, laid over each other and packed without raising the peak (Qi et al.,
// "Pipeline Parallelism with Controllable Memory", 2024, section 3.3).
#pragma once

#include "schedules/search/building_blocks.h"

namespace bubblescope {

/// 1F1B-V's own block. A backward takes two slots; after every third rank it rests for three, in
/// which the forwards of others lie.
BuildingBlock fused_v_block(std::int32_t ranks);

/// Slot by slot, every op moves to the first empty slot (a backward to the first two) behind its
/// inputs; a forward no further than all slots on its way hold less than the block's own peak.
/// Full backwards only.
Skeleton packed_fused_order(const SearchProblem& problem, const BuildingBlock& block);

}  // namespace bubblescope
