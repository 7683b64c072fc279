// The gradient of attention's keys and values, one tile of queries at a time.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"

namespace bubblescope::exec {

/// Loads both tiles. Waits before, until no thread reads the old contents, and after, until they
/// are loaded.
template <class Value>
__device__ void load_queries_and_grads(Tile& queries, Tile& grads,
                                       const AttentionBackward<Value>& from,
                                       const AttentionGrid& grid, const HeadPlace& at, int tile) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const std::int64_t row = std::int64_t{at.sequence} * grid.sequence + grid.begin + tile;
  const std::int64_t mixed_row = std::int64_t{at.sequence} * grid.count + tile;
  const int left = grid.count - tile;
  __syncthreads();
  load_tile(queries, from.qkv + entry_of(grid, row, at.head, 0, 3), 3 * width, left, grid.width);
  load_tile(grads, from.mixed_grad + entry_of(grid, mixed_row, at.head, 0, 1), width, left,
            grid.width);
  __syncthreads();
}

/// Adds to the keys' and values' parts of `grad`, for all positions before the end of the queries.
template <class Value>
__global__ void key_grad_kernel(Value* grad, const float* dots, AttentionBackward<Value> from,
                                AttentionGrid grid) {
  __shared__ Tile queries, grads;
  __shared__ float keys[kAttentionWarps][kMaxHeadWidth], values[kAttentionWarps][kMaxHeadWidth],
      weights[kAttentionWarps][kTileRows], slopes[kAttentionWarps][kTileRows];
  const int end = grid.begin + grid.count;
  const HeadPlace at(grid, end);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int key = at.first + warp;
  const bool has_key = key < end;
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  const std::int64_t key_entry =
      entry_of(grid, std::int64_t{at.sequence} * grid.sequence + key, at.head, 1, 3);
  load_row(keys[warp], from.qkv + key_entry, grid.width, has_key);
  load_row(values[warp], from.qkv + key_entry + width, grid.width, has_key);
  // The first query that attends to any key of the block.
  const int first = at.first > grid.begin ? at.first - grid.begin : 0;
  float key_grad[kColumnsPerLane] = {}, value_grad[kColumnsPerLane] = {};
  for (int tile = first; tile < grid.count; tile += kTileRows) {
    load_queries_and_grads(queries, grads, from, grid, at, tile);
    float weight = 0, slope = 0;
    if (has_key && tile + lane < grid.count && key <= grid.begin + tile + lane) {
      const std::int64_t row = std::int64_t{at.sequence} * grid.count + tile + lane;
      const std::int64_t entry = row * grid.heads + at.head;
      weight = expf(grid.scale * dot(keys[warp], queries[lane], grid.width) - from.logs[entry]);
      slope = weight * (dot(values[warp], grads[lane], grid.width) - dots[entry]);
    }
    weights[warp][lane] = weight;
    slopes[warp][lane] = slope;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part) {
      key_grad[part] = add_column(key_grad[part], slopes[warp], queries, part * kWarp + lane);
      value_grad[part] = add_column(value_grad[part], weights[warp], grads, part * kWarp + lane);
    }
  }
  if (!has_key) return;
  add_row(grad + key_entry, key_grad, grid.scale, grid.width);
  add_row(grad + key_entry + width, value_grad, 1, grid.width);
}

}  // namespace bubblescope::exec
