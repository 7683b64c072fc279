// Blocks with full backwards, merged and packed without raising the peak (Qi et al., "Pipeline
// Parallelism with Controllable Memory", 2024, section 3.3).
#pragma once

#include "schedules/search/building_blocks.h"

namespace bubblescope::schedules {

/// 1F1B-V's block. A backward takes two slots; after every third rank it pauses for three slots,
/// which other forwards use.
BuildingBlock make_fused_v_block(std::int32_t ranks);

/// Slot by slot, moves every op to the first empty slot (a backward to the first two) after its
/// inputs, and a forward only so far that all slots in between hold less than the block's own peak.
/// Full backwards only.
Skeleton pack_fused_block(const SearchProblem& problem, const BuildingBlock& block);

}  // namespace bubblescope::schedules
