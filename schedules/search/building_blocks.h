// V-shaped building blocks: the slots in which one micro-batch passes each rank, such that copies
// every six slots never collide (Qi et al., "Pipeline Parallelism with Controllable Memory", 2024).
#pragma once

#include <array>
#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope::schedules {

/// Slots of F0, F1, I1, I0 (the index is the chunk) on every rank.
struct BuildingBlock {
  struct Passes {
    std::int32_t forward[2];
    std::int32_t gradient[2];
  };
  std::vector<Passes> ranks;

  /// The maximum over ranks of the slots between the chunks' F and I, summed: six times the chunks
  /// that are held.
  std::int32_t lifespan() const;
};

/// The moves of the four passes, in slots.
struct BlockShape {
  using Hops = std::array<std::int32_t, 4>;   ///< for F0, F1, I1, I0
  std::vector<Hops> hops;                     ///< [rank]: from the previous rank to this one
  std::array<std::int32_t, 3> turn{1, 1, 1};  ///< from F0 to F1, F1 to I1, I1 to I0
};

BuildingBlock make_v_block(const BlockShape& shape);

/// True if copies of the block every six slots leave each rank at most one op per slot, with the
/// passes after each turn delayed by `rests`. A fused backward takes two slots.
bool repeats(const BuildingBlock& block, bool fused, const std::array<std::int32_t, 3>& rests = {});

/// Merges the blocks of all micro-batches, six slots apart.
Skeleton unroll(const SearchProblem& problem, const BuildingBlock& block);

/// Merges the blocks likewise, and puts each W into the first free slot after its I.
TokenOrder unroll_and_add_weights(const SearchProblem& problem, const BuildingBlock& block);

/// Returns the shapes of V-Half and V-Min.
std::vector<BlockShape> list_published_block_shapes(std::int32_t ranks);

/// Returns all repeatable shapes of the family.
std::vector<BlockShape> list_split_block_shapes(std::int32_t ranks);
std::vector<BlockShape> list_fused_block_shapes(std::int32_t ranks);

/// Blocks with a lifespan of at most `longest`: the published ones, then those of all shapes, the
/// longest first. If there are more than `count`, a selection over all lifespans.
std::vector<BuildingBlock> select_v_blocks(std::int32_t ranks, bool fused, std::int64_t longest,
                                           std::size_t count);

}  // namespace bubblescope::schedules
