// The rows of queries, keys and values that a block and its threads work on, and where they lie.
#pragma once

#include "exec/gpu/device/fragment_tiles.cuh"

namespace bubblescope::exec {

/// Where a block and its threads work: kBlockRows rows of one head. Blocks with more work come first.
struct FragmentPlace {
  __device__ FragmentPlace(const AttentionGrid& grid, int rows, bool from_last)
      : tiles((rows + kBlockRows - 1) / kBlockRows),
        tile(static_cast<int>(blockIdx.x) % tiles),
        first((from_last ? tiles - 1 - tile : tile) * kBlockRows),
        head(static_cast<int>(blockIdx.x) / tiles % grid.heads),
        sequence(static_cast<int>(blockIdx.x) / tiles / grid.heads),
        warp_row(static_cast<int>(threadIdx.x) / kWarp * kFragmentRows),
        lane_row(static_cast<int>(threadIdx.x) % kWarp / 4),
        lane_column(static_cast<int>(threadIdx.x) % 4 * 2) {}

  int tiles;
  int tile;
  int first;  ///< row of the block in the head
  int head;
  int sequence;
  int warp_row;     ///< first row of the warp in the block
  int lane_row;     ///< first row of the lane in the warp; its second is 8 further on
  int lane_column;  ///< first column of the lane in a fragment

  /// One of the lane's two rows in the head.
  __device__ int row(int half) const { return first + warp_row + lane_row + 8 * half; }
};

/// The entry of a head's row at a position: a query (third 0), key (1) or value (2).
__device__ inline std::int64_t entry_of_qkv(const AttentionGrid& grid, const FragmentPlace& at,
                                            int third, int position) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const std::int64_t row = std::int64_t{at.sequence} * grid.sequence + position;
  return row * 3 * width + third * width + std::int64_t{at.head} * grid.width;
}

/// Such rows from a position on, up to `end`.
__device__ inline HeadRows rows_of_qkv(const Bfloat16* qkv, const AttentionGrid& grid,
                                       const FragmentPlace& at, int third, int position, int end) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const Bfloat16* const first = qkv + entry_of_qkv(grid, at, third, position);
  const bool is_aligned =
      grid.width % kVector == 0 && reinterpret_cast<std::uintptr_t>(qkv) % 16 == 0;
  return {first, 3 * width, end - position, grid.width, is_aligned};
}

/// The entry of a head's row in a matrix with one row per query.
__device__ inline std::int64_t entry_of_mixed(const AttentionGrid& grid, const FragmentPlace& at,
                                              int query) {
  const std::int64_t row = std::int64_t{at.sequence} * grid.count + query;
  return (row * grid.heads + at.head) * grid.width;
}

/// Such rows from a query on.
__device__ inline HeadRows rows_of_queries(const Bfloat16* matrix, const AttentionGrid& grid,
                                           const FragmentPlace& at, int query) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const bool is_aligned =
      grid.width % kVector == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
  return {matrix + entry_of_mixed(grid, at, query), width, grid.count - query, grid.width,
          is_aligned};
}

/// The entry of a query and head in a matrix with one number for each.
__device__ inline std::int64_t entry_of_query(const AttentionGrid& grid, const FragmentPlace& at,
                                              int query) {
  return (std::int64_t{at.sequence} * grid.count + query) * grid.heads + at.head;
}

}  // namespace bubblescope::exec
