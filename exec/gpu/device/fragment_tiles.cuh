// Tiles in shared memory for attention on tensor cores, and the fragments that warps read from
// them. Heads of up to kWidth columns are filled up with zeros, which change no product.
#pragma once

#include "exec/gpu/device/chunk.cuh"
#include "exec/gpu/device/fragment_shape.cuh"
#include "exec/gpu/device/mma.cuh"

namespace bubblescope::exec {

inline constexpr int kVector = kWideChunk<Bfloat16>;  ///< numbers in 16 bytes

/// Rows of one head. The padding puts the same columns of adjacent rows into other banks.
template <int kRows, int kWidth>
struct alignas(2 * kVector) FragmentTile {
  Bfloat16 rows[kRows][kWidth + kVector];
};

/// Loads the left operand of a warp: 16 rows from `row` on, 16 columns from `column` on.
template <int kRows, int kWidth>
__device__ void load_left(std::uint32_t (&to)[4], const FragmentTile<kRows, kWidth>& tile, int row,
                          int column) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  load_matrices(to,
                &tile.rows[row + lane % kFragmentRows][column + lane / kFragmentRows * kVector]);
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

/// Loads two right operands, for products with the tile itself, from the same rows and columns.
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
