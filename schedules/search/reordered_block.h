// V-shaped blocks with rewritten warm-up and cool-down (Qi et al., "Pipeline Parallelism with
// Controllable Memory", 2024, section 3.3 and the authors' automatic schedule).
#pragma once

#include <vector>

#include "schedules/search/block_cells.h"

namespace bubblescope::schedules {

/// The orders that a block gives for so many micro-batches; none if it holds more than 2p chunks or
/// a step fails. They depend on the block's own peak, not on any cap.
std::vector<TokenOrder> reorder_block(const BlockRows& rows, std::int32_t microbatches);

}  // namespace bubblescope::schedules
