// The gradient of attention's queries, tile of keys by tile of keys.
#pragma once

#include "exec/gpu/attention_tiles.cuh"

namespace bubblescope {

/// Adds to the queries' part of `grad`, and writes `dots`: per row, its mixed * mixed_grad.
template <class Value>
__global__ void query_grad_kernel(Value* grad, float* dots, AttentionBackward<Value> of,
                                  AttentionGrid grid) {
  __shared__ Tile keys, values;
  __shared__ float queries[kAttentionWarps][kMostHeadWidth], grads[kAttentionWarps][kMostHeadWidth],
      slopes[kAttentionWarps][kTileRows];
  const HeadPlace at(grid, grid.count);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int query = at.first + warp;
  const bool asks = query < grid.count;
  const int position = grid.begin + query;
  const std::int64_t first_row = std::int64_t{at.sequence} * grid.sequence;
  const std::int64_t row = std::int64_t{at.sequence} * grid.count + query;
  const std::int64_t step = 3 * std::int64_t{grid.heads} * grid.width;
  float product = 0;
  for (int column = lane; column < grid.width && asks; column += kWarp) {
    const std::int64_t entry = entry_of(grid, row, at.head, 0, 1) + column;
    queries[warp][column] =
        to_float(of.qkv[entry_of(grid, first_row + position, at.head, 0, 3) + column]);
    grads[warp][column] = to_float(of.mixed_grad[entry]);
    product += grads[warp][column] * to_float(of.mixed[entry]);
  }
  product = over_warp(product, Add());
  const float log = asks ? of.logs[row * grid.heads + at.head] : 0.0F;
  if (asks && lane == 0) dots[row * grid.heads + at.head] = product;
  const int end = grid.begin + (at.first + kAttentionWarps < grid.count ? at.first + kAttentionWarps
                                                                        : grid.count);
  float made[kColumnsPerLane] = {};
  for (int tile = 0; tile < end; tile += kTileRows) {
    __syncthreads();
    load_tile(keys, of.qkv + entry_of(grid, first_row + tile, at.head, 1, 3), step, end - tile,
              grid.width);
    load_tile(values, of.qkv + entry_of(grid, first_row + tile, at.head, 2, 3), step, end - tile,
              grid.width);
    __syncthreads();
    float slope = 0;
    if (asks && tile + lane <= position)
      slope = expf(grid.scale * dot(queries[warp], keys[lane], grid.width) - log) *
              (dot(grads[warp], values[lane], grid.width) - product);
    slopes[warp][lane] = slope;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part)
      for (int key = 0; key < kTileRows; ++key)
        made[part] += slopes[warp][key] * keys[key][part * kWarp + lane];
  }
  if (!asks) return;
  for (int part = 0; part * kWarp + lane < grid.width; ++part)
    add_to(grad[entry_of(grid, first_row + position, at.head, 0, 3) + part * kWarp + lane],
           grid.scale * made[part]);
}

}  // namespace bubblescope
