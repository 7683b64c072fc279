// Parts that the attention kernels with one warp per query share.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"

namespace bubblescope::exec {

/// The query of a warp and its position.
struct QueryRow {
  __device__ explicit QueryRow(const AttentionGrid& grid)
      : at(grid, grid.count),
        warp(static_cast<int>(threadIdx.x) / kWarp),
        lane(static_cast<int>(threadIdx.x) % kWarp),
        query(at.first + warp),
        position(grid.begin + query),
        end(grid.begin +
            (at.first + kAttentionWarps < grid.count ? at.first + kAttentionWarps : grid.count)),
        has_query(query < grid.count),
        first_row(std::int64_t{at.sequence} * grid.sequence),
        mixed_row(std::int64_t{at.sequence} * grid.count + query) {}

  HeadPlace at;
  int warp;
  int lane;
  int query;
  int position;
  int end;                 ///< positions to which the block's queries attend: [0, end)
  bool has_query;               ///< the warp has a query
  std::int64_t first_row;  ///< of the sequence
  std::int64_t mixed_row;
};

/// Loads both tiles. Waits before, until no thread reads the old contents, and after, until they
/// are loaded.
template <class Value>
__device__ void load_keys_and_values(Tile& keys, Tile& values, const Value* qkv,
                                     const AttentionGrid& grid, const QueryRow& query_row, int tile) {
  const std::int64_t step = 3 * std::int64_t{grid.heads} * grid.width;
  const std::int64_t row = query_row.first_row + tile;
  __syncthreads();
  load_tile(keys, qkv + entry_of(grid, row, query_row.at.head, 1, 3), step, query_row.end - tile, grid.width);
  load_tile(values, qkv + entry_of(grid, row, query_row.at.head, 2, 3), step, query_row.end - tile, grid.width);
  __syncthreads();
}

}  // namespace bubblescope::exec
