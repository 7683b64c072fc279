// The sums of products on tensor cores, and what is done with them.
#pragma once

#include "exec/gpu/device/fragment_place.cuh"

namespace bubblescope::exec {

/// The sums of a warp for some columns.
template <int kPieces, int kColumns>
struct FragmentSums {
  float of[kPieces][kColumns / kFragmentColumns][4] = {};
};

/// Sets scores of the warp's queries to minus infinity where the key is after the query. `key` is
/// the first.
template <int kPieces, int kStep>
__device__ void mask_keys(FragmentSums<kPieces, kStep>& scores, const FragmentPlace& at,
                          const AttentionGrid& grid, int key) {
  if (key + kStep <= grid.begin + at.first + at.warp_row + 1) return;  // all are before
  const int before = grid.begin + at.row(0, 0) - key - at.lane_column;
  BUBBLESCOPE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
  for (int part = 0; part < kStep / kFragmentColumns; ++part) BUBBLESCOPE_UNROLL
  for (int each = 0; each < 4; ++each) {
    const int row = piece * kFragmentRows + each / 2 * 8;
    if (part * kFragmentColumns + each % 2 - row > before) scores.of[piece][part][each] = -INFINITY;
  }
}

/// The same where rows are keys and columns queries. `query` is the first.
template <int kPieces, int kStep>
__device__ void mask_queries(FragmentSums<kPieces, kStep>& scores, const FragmentPlace& at,
                             const AttentionGrid& grid, int query) {
  if (at.first + at.warp_row + kPieces * kFragmentRows <= grid.begin + query + 1) return;
  const int after = at.row(0, 0) - grid.begin - query - at.lane_column;
  BUBBLESCOPE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
  for (int part = 0; part < kStep / kFragmentColumns; ++part) BUBBLESCOPE_UNROLL
  for (int each = 0; each < 4; ++each) {
    const int row = piece * kFragmentRows + each / 2 * 8;
    if (part * kFragmentColumns + each % 2 - row < after) scores.of[piece][part][each] = -INFINITY;
  }
}

/// Reduces over the four lanes that share the rows of a fragment.
template <class Combine>
__device__ float reduce_row(float value, Combine combine) {
  value = combine(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return combine(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/// Replaces a lane's pairs of numbers in the warp's rows of a tile: `result(piece, half, sum,
/// before)` is what becomes of a number that was there before.
template <int kPieces, int kWidth, int kRows, class Result>
__device__ void put_sums(FragmentTile<kRows, kWidth>& tile, const FragmentPlace& at,
                         const FragmentSums<kPieces, kWidth>& sums, const Result& result) {
  BUBBLESCOPE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    Bfloat16* const row = &tile.rows[at.row(piece, half) - at.first][at.lane_column];
    BUBBLESCOPE_UNROLL
    for (int part = 0; part < kWidth / kFragmentColumns; ++part) {
      const auto& own = sums.of[piece][part];
      Bfloat16* const pair = row + part * kFragmentColumns;
      const Chunk<2, Bfloat16> before = load_chunk<2>(pair);
      store_chunk(
          pair,
          Chunk<2, Bfloat16>{
              {from_float<Bfloat16>(result(piece, half, own[2 * half], before.values[0])),
               from_float<Bfloat16>(result(piece, half, own[2 * half + 1], before.values[1]))}});
    }
  }
}

/// Adds sums, times `scale`, to a tile, which holds what was there before.
template <int kPieces, int kWidth, int kRows>
__device__ void add_sums(FragmentTile<kRows, kWidth>& tile, const FragmentPlace& at,
                         const FragmentSums<kPieces, kWidth>& sums, float scale) {
  put_sums(tile, at, sums, [scale](int, int, float sum, Bfloat16 before) {
    return to_float(before) + scale * sum;
  });
}

}  // namespace bubblescope::exec
