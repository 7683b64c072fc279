// V-Half and V-Min as their authors pack them: first with the W in their slots, then the cool-down
// again without them (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
#pragma once

#include "schedules/search/building_blocks.h"

namespace bubblescope::schedules {

/// Repeats the block every six slots, packs it without raising its own peak, moves every op as
/// early as its inputs allow in slots of one op each, packs the cool-down again with the W in the
/// remaining slots, and puts the W of chunk 1 before those of chunk 0. Split backwards only.
TokenOrder pack_block_twice(const SearchProblem& problem, const BuildingBlock& block);

}  // namespace bubblescope::schedules
