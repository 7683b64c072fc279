// How the blocks of attention on tensor cores divide their work. What is fast differs by the width
// of heads and by the kernel, because sums of wide heads take most registers.
#pragma once

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/device/dtype.cuh"

namespace bubblescope::exec {

inline constexpr int kFragmentRows = 16;    ///< of a product
inline constexpr int kFragmentColumns = 8;  ///< of a product

/// A warp has `pieces` x 16 rows of one side, and passes through tiles of `tile` rows of the other
/// side, `step` of them at once. `keeps` of its one or two left operands stay in registers; the
/// others are read from shared memory for every product. `blocks` of them share a multiprocessor,
/// so registers must suffice for all. The blocks of `heads` heads start together: enough that the
/// last blocks are short, and few enough that their keys and values stay in the L2 cache. The
/// largest score may grow by `slack` powers of two before sums are scaled anew.
template <int width, int warps, int pieces, int tile, int step, int keeps, int blocks,
          int heads = 16, int slack = 8>
struct FragmentShape {
  static constexpr int kWidth = width;
  static constexpr int kPieces = pieces;
  static constexpr int kTile = tile;
  static constexpr int kStep = step;
  static constexpr bool kKeepsFirst = keeps >= 1;
  static constexpr bool kKeepsSecond = keeps >= 2;
  static constexpr int kBlocks = blocks;
  static constexpr int kHeads = heads;
  static constexpr int kSlack = slack;
  static constexpr int kThreads = warps * kWarp;
  static constexpr int kWarpRows = pieces * kFragmentRows;
  static constexpr int kBlockRows = warps * kWarpRows;
  static_assert(tile % step == 0 && step % kFragmentRows == 0, "steps are left operands, too");
};

/// Rows are queries, tiles keys.
template <int width>
struct ForwardShape : FragmentShape<width, 4, 2, 64, 64, 1, 2> {};
template <>
struct ForwardShape<128> : FragmentShape<128, 4, 2, 64, 64, 0, 2> {};

/// Rows are queries, tiles keys.
template <int width>
struct QueryGradShape : FragmentShape<width, 4, 2, 64, 32, 2, 2> {};
template <>
struct QueryGradShape<64> : FragmentShape<64, 4, 2, 128, 32, 2, 2> {};
template <>
struct QueryGradShape<128> : FragmentShape<128, 4, 1, 64, 32, 2, 2> {};

/// Rows are keys, tiles queries.
template <int width>
struct KeyGradShape : FragmentShape<width, 4, 2, 64, 16, 0, 2> {};
template <>
struct KeyGradShape<128> : FragmentShape<128, 4, 1, 32, 32, 1, 2> {};

}  // namespace bubblescope::exec
