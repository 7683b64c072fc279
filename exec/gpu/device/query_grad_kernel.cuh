// The gradient of attention's queries, one tile of keys at a time.
#pragma once

#include "exec/gpu/device/query_rows.cuh"

namespace bubblescope {

/// Adds to the queries' part of `grad`, and writes to `dots` the dot product of mixed and
/// mixed_grad of every row.
template <class Value>
__global__ void query_grad_kernel(Value* grad, float* dots, AttentionBackward<Value> from,
                                  AttentionGrid grid) {
  __shared__ Tile keys, values;
  __shared__ float queries[kAttentionWarps][kMostHeadWidth], grads[kAttentionWarps][kMostHeadWidth],
      slopes[kAttentionWarps][kTileRows];
  const QueryRow of(grid);
  const int warp = of.warp, lane = of.lane;
  const std::int64_t entry = entry_of(grid, of.first_row + of.position, of.at.head, 0, 3);
  const std::int64_t mixed = entry_of(grid, of.mixed_row, of.at.head, 0, 1);
  const std::int64_t number = of.mixed_row * grid.heads + of.at.head;
  load_row(queries[warp], from.qkv + entry, grid.width, of.asks);
  load_row(grads[warp], from.mixed_grad + mixed, grid.width, of.asks);
  float product = 0;
  for (int column = lane; column < grid.width && of.asks; column += kWarp)
    product += grads[warp][column] * to_float(from.mixed[mixed + column]);
  product = over_warp(product, Add());
  const float log = of.asks ? from.logs[number] : 0.0F;
  if (of.asks && lane == 0) dots[number] = product;
  float made[kColumnsPerLane] = {};
  for (int tile = 0; tile < of.end; tile += kTileRows) {
    load_keys_and_values(keys, values, from.qkv, grid, of, tile);
    float slope = 0;
    if (of.asks && tile + lane <= of.position)
      slope = expf(grid.scale * dot(queries[warp], keys[lane], grid.width) - log) *
              (dot(grads[warp], values[lane], grid.width) - product);
    slopes[warp][lane] = slope;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part)
      made[part] = add_column(made[part], slopes[warp], keys, part * kWarp + lane);
  }
  if (!of.asks) return;
  add_row(grad + entry, made, grid.scale, grid.width);
}

}  // namespace bubblescope
