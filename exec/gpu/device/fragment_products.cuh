// Products of a warp's rows with tiles, and what is done with their sums.
#pragma once

#include "exec/gpu/device/fragment_place.cuh"
#include "exec/gpu/device/fragment_tiles.cuh"

namespace bubblescope::exec {

/// sums += left * transpose of the tile, whose first rows are the columns of the sums; the left
/// operand comes from `load(to, column)`.
template <int kRows, int kWidth, class Load>
__device__ void multiply_by_rows(float (&sums)[kRows / kFragmentColumns][4],
                                 const FragmentTile<kRows, kWidth>& tile, const Load& load) {
  BUBBLESCOPE_UNROLL
  for (int column = 0; column < kWidth; column += kFragmentRows) {
    std::uint32_t left[4];
    load(left, column);
    BUBBLESCOPE_UNROLL
    for (int row = 0; row < kRows; row += kFragmentRows) {
      std::uint32_t first[2], second[2];
      load_right_rows(first, second, tile, row, column);
      multiply_fragments(sums[row / kFragmentColumns], left, first);
      multiply_fragments(sums[row / kFragmentColumns + 1], left, second);
    }
  }
}

/// sums += left * tile. The left operand are sums of another product, rounded.
template <int kRows, int kWidth>
__device__ void multiply_by_columns(float (&sums)[kWidth / kFragmentColumns][4],
                                    const float (&left)[kRows / kFragmentColumns][4],
                                    const FragmentTile<kRows, kWidth>& tile) {
  BUBBLESCOPE_UNROLL
  for (int row = 0; row < kRows; row += kFragmentRows) {
    const auto& low = left[row / kFragmentColumns];
    const auto& high = left[row / kFragmentColumns + 1];
    const std::uint32_t rounded[4] = {pack_halves(low[0], low[1]), pack_halves(low[2], low[3]),
                                      pack_halves(high[0], high[1]), pack_halves(high[2], high[3])};
    BUBBLESCOPE_UNROLL
    for (int column = 0; column < kWidth; column += kFragmentRows) {
      std::uint32_t first[2], second[2];
      load_right_columns(first, second, tile, row, column);
      multiply_fragments(sums[column / kFragmentColumns], rounded, first);
      multiply_fragments(sums[column / kFragmentColumns + 1], rounded, second);
    }
  }
}

/// Reduces over the four lanes that share the rows of a fragment.
template <class Combine>
__device__ float reduce_row(float value, Combine combine) {
  value = combine(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return combine(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

/// Writes a lane's pairs of a warp's sums. `row_of(half)` is the row in memory, null where there is
/// none, and `result(half, sum, before)` what to write for a number that was there before.
template <int kColumns, class Row, class Result>
__device__ void write_sums(const float (&sums)[kColumns][4], const FragmentPlace& at, int width,
                           const Row& row_of, const Result& result) {
  BUBBLESCOPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    Bfloat16* const row = row_of(half);
    if (row == nullptr) continue;
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(row) % sizeof(HalfPair) == 0;
    BUBBLESCOPE_UNROLL
    for (int part = 0; part < kColumns; ++part) {
      const int column = part * kFragmentColumns + at.lane_column;
      const float low = sums[part][2 * half], high = sums[part][2 * half + 1];
      if (is_aligned && column + 1 < width) {
        auto* const pair = reinterpret_cast<HalfPair*>(row + column);
        const HalfPair before = *pair;
        *pair = {from_float<Bfloat16>(result(half, low, before.low)),
                 from_float<Bfloat16>(result(half, high, before.high))};
        continue;
      }
      if (column < width) row[column] = from_float<Bfloat16>(result(half, low, row[column]));
      if (column + 1 < width)
        row[column + 1] = from_float<Bfloat16>(result(half, high, row[column + 1]));
    }
  }
}

/// Adds sums, times `scale`, to rows of memory.
template <int kColumns, class Row>
__device__ void add_sums(const float (&sums)[kColumns][4], float scale, const FragmentPlace& at,
                         int width, const Row& row_of) {
  write_sums(sums, at, width, row_of, [scale](int, float sum, Bfloat16 before) {
    return to_float(before) + scale * sum;
  });
}

}  // namespace bubblescope::exec
