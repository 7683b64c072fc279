// Ranks building blocks by how well they suit a problem's costs and caps.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/search/building_blocks.h"
#include "schedules/search/order_pool.h"

namespace bubblescope::schedules {

/// Offers three orders of the block: with the W in every gap, only in gaps that they fit, and in
/// the block's own slots. Returns the best score; empty if none keeps the caps.
std::optional<Score> offer_block(OrderPool& pool, const BuildingBlock& block);

/// The best blocks for a problem, the best first: at most `wanted`, from as many as can be tried
/// with `ops` timed ops. They are compared by their spans with few micro-batches, extrapolated with
/// the period that those show.
std::vector<BuildingBlock> find_best_blocks(const SearchProblem& problem, std::size_t wanted,
                                            std::int64_t ops);

}  // namespace bubblescope::schedules
