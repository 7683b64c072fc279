// Tiles in shared memory for attention on tensor cores, and the fragments that warps read from them.
// Heads of up to kWidth columns are filled up with zeros, which change no product.
#pragma once

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/device/mma.cuh"

namespace bubblescope::exec {

inline constexpr int kFragmentRows = 16;  ///< of a warp
inline constexpr int kFragmentColumns = 8;  ///< of a product
inline constexpr int kBlockRows = kFragmentWarps * kFragmentRows;
inline constexpr int kVector = 8;  ///< numbers in 16 bytes

/// Rows of one head. The padding puts the same columns of adjacent rows into other banks.
template <int kRows, int kWidth>
struct alignas(2 * kVector) FragmentTile {
  Bfloat16 rows[kRows][kWidth + kVector];
};

/// Two adjacent numbers, which are written at once.
struct alignas(4) HalfPair {
  Bfloat16 low, high;
};

/// Adjacent rows of one head in global memory.
struct HeadRows {
  const Bfloat16* first;
  std::int64_t step;  ///< between rows
  int count;          ///< rows from here on are zeros
  int width;
  bool is_aligned;  ///< rows begin at multiples of 16 bytes

  /// `rows` rows further on.
  __device__ HeadRows after(int rows) const {
    return {first + rows * step, step, count - rows, width, is_aligned};
  }
};

/// Begins to fill a tile with all threads of the block.
template <int kRows, int kWidth>
__device__ void begin_tile(FragmentTile<kRows, kWidth>& tile, const HeadRows& from) {
  constexpr int kVectors = kWidth / kVector;
  for (int at = threadIdx.x; at < kRows * kVectors; at += kFragmentWarps * kWarp) {
    const int row = at / kVectors, column = at % kVectors * kVector;
    Bfloat16* const to = &tile.rows[row][column];
    const Bfloat16* const source = from.first + row * from.step + column;
    if (from.is_aligned) {
      const bool is_there = row < from.count && column < from.width;
      begin_copy(to, is_there ? source : from.first, is_there);
      continue;
    }
    for (int each = 0; each < kVector; ++each)
      to[each] = row < from.count && column + each < from.width ? source[each] : Bfloat16{0};
  }
}

/// Waits until the tiles that were begun are full, for all threads.
__device__ inline void await_tiles() {
  await_copies();
  __syncthreads();
}

/// The left operand of a warp: 16 rows from `row` on, 16 columns from `column` on.
template <int kRows, int kWidth>
__device__ void load_left(std::uint32_t (&to)[4], const FragmentTile<kRows, kWidth>& tile, int row,
                          int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices(to, &tile.rows[row + lane % kFragmentRows][column + lane / kFragmentRows * kVector]);
}

/// Two right operands, for products with the transpose of the tile: rows become columns. They cover
/// 16 rows from `row` on and 16 columns from `column` on.
template <int kRows, int kWidth>
__device__ void load_right_rows(std::uint32_t (&first)[2], std::uint32_t (&second)[2],
                                const FragmentTile<kRows, kWidth>& tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::uint32_t both[4];
  load_matrices(both, &tile.rows[row + lane / kFragmentRows * kVector + lane % kVector]
                                [column + lane / kVector % 2 * kVector]);
  first[0] = both[0], first[1] = both[1], second[0] = both[2], second[1] = both[3];
}

/// Two right operands, for products with the tile itself, of the same rows and columns.
template <int kRows, int kWidth>
__device__ void load_right_columns(std::uint32_t (&first)[2], std::uint32_t (&second)[2],
                                   const FragmentTile<kRows, kWidth>& tile, int row, int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  std::uint32_t both[4];
  load_transposed(both,
                  &tile.rows[row + lane % kFragmentRows][column + lane / kFragmentRows * kVector]);
  first[0] = both[0], first[1] = both[1], second[0] = both[2], second[1] = both[3];
}

}  // namespace bubblescope::exec
