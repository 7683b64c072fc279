// Orders of V placements as cells: what every rank runs in each slot of one op.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

inline constexpr Token kEmptyCell = 255;

/// [rank][slot]: a token, or kEmptyCell. Micro-batches go first in, first out for each token.
using BlockCells = std::vector<std::vector<Token>>;

/// [rank]: F0, F1, I1, I0, W1 and W0 of one micro-batch, as slots modulo six, all different.
using BlockRows = std::vector<std::array<std::int32_t, 6>>;

/// The V-shaped blocks whose F0 and I1 move one to five slots per rank, and may change this offset
/// once, while F1 and I0 move by one; each W takes the first free slot after its I.
std::vector<BlockRows> strided_block_rows(std::int32_t ranks);

/// Copies of the block, six slots apart, for so many micro-batches.
BlockCells repeat_block(const BlockRows& rows, std::int32_t microbatches);

/// The maximum number of chunks that any rank holds.
std::int32_t peak_of(const BlockCells& cells);

/// [rank]: the maximum number of chunks that it holds.
std::vector<std::int32_t> peaks_of(const BlockCells& cells);

/// Moves every op to the first slot that its inputs and the ops before it on its rank allow. Empty
/// if an op comes before its input.
std::optional<BlockCells> compacted(const BlockCells& cells);

/// True if every rank runs each token for every micro-batch, after its inputs.
bool is_complete(const BlockCells& cells, std::int32_t microbatches);

TokenOrder order_of(const BlockCells& cells);

}  // namespace bubblescope::schedules
