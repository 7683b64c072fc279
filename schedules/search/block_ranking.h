// Which building blocks suit the costs and caps of a problem.
#pragma once

#include <cstddef>
#include <vector>

#include "schedules/search/building_blocks.h"
#include "schedules/search/order_pool.h"

namespace bubblescope {

/// Offers the block's orders with the W in every gap, in no gap that they do not fit, and in the
/// block's own slots. The best of their scores; empty if none keeps the caps.
std::optional<Score> offer_block(OrderPool& pool, const BuildingBlock& block);

/// The best blocks for a problem, the best first: at most `wanted`, out of at most `tried`. They
/// are compared by their spans with few micro-batches, continued at the pace that those show.
std::vector<BuildingBlock> best_blocks(const SearchProblem& problem, std::size_t wanted,
                                       std::size_t tried);

}  // namespace bubblescope
