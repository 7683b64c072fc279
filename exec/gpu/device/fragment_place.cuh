// The rows of queries, keys and values that a block and its threads work on, and where they lie.
#pragma once

#include "exec/gpu/device/block_parts.cuh"
#include "exec/gpu/device/tile_copies.cuh"

namespace bubblescope::exec {

/// Where a block and its threads work: some rows of one head. Of the heads that start together,
/// blocks with more work come first.
struct FragmentPlace {
  /// Finds the place of this thread in a head with `rows` rows.
  template <class Shape>
  __device__ FragmentPlace(const Shape&, const AttentionGrid& grid, int rows, bool from_last)
      : warp_row(static_cast<int>(threadIdx.x) / kWarp * Shape::kWarpRows),
        lane_row(static_cast<int>(threadIdx.x) % kWarp / 4),
        lane_column(static_cast<int>(threadIdx.x) % 4 * 2) {
    const int tiles = (rows + Shape::kBlockRows - 1) / Shape::kBlockRows;
    const int heads = grid.batch * grid.heads, index = read_block_index();
    const int before = index / (Shape::kHeads * tiles) * Shape::kHeads;
    const int together = heads - before < Shape::kHeads ? heads - before : Shape::kHeads;
    const int block = index - before * tiles;
    const int tile = block / together, chosen = before + block % together;
    first = (from_last ? tiles - 1 - tile : tile) * Shape::kBlockRows;
    head = chosen % grid.heads;
    sequence = chosen / grid.heads;
  }

  int first = 0;  ///< row of the block in the head
  int head = 0;
  int sequence = 0;
  int warp_row;     ///< first row of the warp in the block
  int lane_row;     ///< first row of the lane in the warp; its second is 8 further on
  int lane_column;  ///< first column of the lane in a fragment

  /// Returns one of the lane's two rows of a piece of the warp, in the head.
  __device__ int row(int piece, int half) const {
    return first + warp_row + piece * kFragmentRows + lane_row + 8 * half;
  }
};

/// Returns the entry of a head's row at a position: a query (third 0), key (1) or value (2).
__device__ inline std::int64_t entry_of_qkv(const AttentionGrid& grid, const FragmentPlace& at,
                                            int third, int position) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const std::int64_t row = std::int64_t{at.sequence} * grid.sequence + position;
  return row * 3 * width + third * width + std::int64_t{at.head} * grid.width;
}

/// Whether rows begin at multiples of 16 bytes.
__device__ inline bool has_aligned_rows(const AttentionGrid& grid, const Bfloat16* matrix) {
  return grid.width % kVector == 0 && reinterpret_cast<std::uintptr_t>(matrix) % 16 == 0;
}

/// Returns the rows of queries (third 0), keys (1) or values (2) from a position to before `end`.
template <class Number>
__device__ HeadRows<Number> rows_of_qkv(Number* qkv, const AttentionGrid& grid,
                                        const FragmentPlace& at, int third, int position, int end) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  return {qkv + entry_of_qkv(grid, at, third, position), 3 * width, end - position, grid.width,
          has_aligned_rows(grid, qkv)};
}

/// Returns the entry of a query and head in a matrix with one number for each.
__device__ inline std::int64_t entry_of_query(const AttentionGrid& grid, const FragmentPlace& at,
                                              int query) {
  return (std::int64_t{at.sequence} * grid.count + query) * grid.heads + at.head;
}

/// Returns the rows of a head from a query on, in a matrix with one row per query.
template <class Number>
__device__ HeadRows<Number> rows_of_queries(Number* matrix, const AttentionGrid& grid,
                                            const FragmentPlace& at, int query) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  return {matrix + entry_of_query(grid, at, query) * grid.width, width, grid.count - query,
          grid.width, has_aligned_rows(grid, matrix)};
}

}  // namespace bubblescope::exec
