// The gradient of attention's keys and values, tile of queries by tile of queries.
#pragma once

#include "exec/gpu/attention_tiles.cuh"

namespace bubblescope {

/// Adds to the keys' and values' parts of `grad`, of all positions before the end of those asking.
template <class Value>
__global__ void key_grad_kernel(Value* grad, const float* dots, AttentionBackward<Value> of,
                                AttentionGrid grid) {
  __shared__ Tile queries, grads;
  __shared__ float keys[kAttentionWarps][kMostHeadWidth], values[kAttentionWarps][kMostHeadWidth],
      weights[kAttentionWarps][kTileRows], slopes[kAttentionWarps][kTileRows];
  const int end = grid.begin + grid.count;
  const HeadPlace at(grid, end);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int key = at.first + warp;
  const bool asked = key < end;
  const std::int64_t first_row = std::int64_t{at.sequence} * grid.sequence;
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  for (int column = lane; column < grid.width && asked; column += kWarp) {
    keys[warp][column] = to_float(of.qkv[entry_of(grid, first_row + key, at.head, 1, 3) + column]);
    values[warp][column] =
        to_float(of.qkv[entry_of(grid, first_row + key, at.head, 2, 3) + column]);
  }
  // The first query that looks at any of the block's keys.
  const int first = at.first > grid.begin ? at.first - grid.begin : 0;
  float key_grad[kColumnsPerLane] = {}, value_grad[kColumnsPerLane] = {};
  for (int tile = first; tile < grid.count; tile += kTileRows) {
    const std::int64_t row = std::int64_t{at.sequence} * grid.count + tile;
    __syncthreads();
    load_tile(queries, of.qkv + entry_of(grid, first_row + grid.begin + tile, at.head, 0, 3),
              3 * width, grid.count - tile, grid.width);
    load_tile(grads, of.mixed_grad + entry_of(grid, row, at.head, 0, 1), width, grid.count - tile,
              grid.width);
    __syncthreads();
    float weight = 0, slope = 0;
    if (asked && tile + lane < grid.count && key <= grid.begin + tile + lane) {
      const std::int64_t entry = (row + lane) * grid.heads + at.head;
      weight = expf(grid.scale * dot(keys[warp], queries[lane], grid.width) - of.logs[entry]);
      slope = weight * (dot(values[warp], grads[lane], grid.width) - dots[entry]);
    }
    weights[warp][lane] = weight;
    slopes[warp][lane] = slope;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part)
      for (int query = 0; query < kTileRows; ++query) {
        key_grad[part] += slopes[warp][query] * queries[query][part * kWarp + lane];
        value_grad[part] += weights[warp][query] * grads[query][part * kWarp + lane];
      }
  }
  if (!asked) return;
  for (int part = 0; part * kWarp + lane < grid.width; ++part) {
    const int column = part * kWarp + lane;
    add_to(grad[entry_of(grid, first_row + key, at.head, 1, 3) + column],
           grid.scale * key_grad[part]);
    add_to(grad[entry_of(grid, first_row + key, at.head, 2, 3) + column], value_grad[part]);
  }
}

}  // namespace bubblescope
