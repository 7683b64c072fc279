// V-shaped building blocks: when one micro-batch passes each rank, in slots of one op, so that
// copies of it every six slots never collide (Qi et al., "Pipeline Parallelism with Controllable
// Memory", 2024).
#pragma once

#include <array>
#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope {

/// Slots of F0, F1, I1, I0 (the index is the chunk) on every rank.
struct BuildingBlock {
  struct Passes {
    std::int32_t forward[2];
    std::int32_t gradient[2];
  };
  std::vector<Passes> ranks;

  /// Slots between the chunks' F and I, summed, for the rank where that is most: six times the
  /// chunks that are held.
  std::int32_t lifespan() const;
};

/// How far the four passes move, in slots.
struct BlockShape {
  using Hops = std::array<std::int32_t, 4>;   ///< of F0, F1, I1, I0
  std::vector<Hops> hops;                     ///< [rank]: between the rank before it and this one
  std::array<std::int32_t, 3> turn{1, 1, 1};  ///< from F0 to F1, F1 to I1, I1 to I0
};

BuildingBlock v_block(const BlockShape& shape);

/// True if copies of the block every six slots leave each rank at most one op per slot, when the
/// passes after each turn are put off by `rests`. A fused backward takes two slots.
bool repeats(const BuildingBlock& block, bool fused, const std::array<std::int32_t, 3>& rests = {});

/// The micro-batches' blocks laid over each other, six slots apart.
Skeleton unroll(const SearchProblem& problem, const BuildingBlock& block);

/// The same with the W, each in the first slot after its I that nobody else takes.
TokenOrder unroll_with_weights(const SearchProblem& problem, const BuildingBlock& block);

/// V-Half's and V-Min's own.
std::vector<BlockShape> published_block_shapes(std::int32_t ranks);

/// Every shape of the family that repeats.
std::vector<BlockShape> split_block_shapes(std::int32_t ranks);
std::vector<BlockShape> fused_block_shapes(std::int32_t ranks);

/// Blocks whose lifespan is at most `longest`: the published ones, then those of all these shapes,
/// the longest first; of more than `count`, a selection of all lifespans.
std::vector<BuildingBlock> v_blocks(std::int32_t ranks, bool fused, std::int64_t longest,
                                    std::size_t count);

}  // namespace bubblescope
