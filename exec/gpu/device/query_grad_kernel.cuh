// The gradient of attention's queries, one tile of keys at a time.
#pragma once

#include "exec/gpu/device/query_rows.cuh"

namespace bubblescope::exec {

/// Adds to the queries' part of `grad`, and writes to `dots` the dot product of mixed and
/// mixed_grad of every row.
template <class Value>
__global__ void query_grad_kernel(Value* grad, float* dots, AttentionBackward<Value> from,
                                  AttentionGrid grid) {
  __shared__ Tile keys, values;
  __shared__ float queries[kAttentionWarps][kMaxHeadWidth], grads[kAttentionWarps][kMaxHeadWidth],
      slopes[kAttentionWarps][kTileRows];
  const QueryRow query_row(grid);
  const int warp = query_row.warp, lane = query_row.lane;
  const std::int64_t entry = entry_of(grid, query_row.first_row + query_row.position, query_row.at.head, 0, 3);
  const std::int64_t mixed = entry_of(grid, query_row.mixed_row, query_row.at.head, 0, 1);
  const std::int64_t index = query_row.mixed_row * grid.heads + query_row.at.head;
  load_row(queries[warp], from.qkv + entry, grid.width, query_row.has_query);
  load_row(grads[warp], from.mixed_grad + mixed, grid.width, query_row.has_query);
  float dot_product = 0;
  for (int column = lane; column < grid.width && query_row.has_query; column += kWarp)
    dot_product += grads[warp][column] * to_float(from.mixed[mixed + column]);
  dot_product = reduce_warp(dot_product, Add());
  const float log = query_row.has_query ? from.logs[index] : 0.0F;
  if (query_row.has_query && lane == 0) dots[index] = dot_product;
  float query_grad[kColumnsPerLane] = {};
  for (int tile = 0; tile < query_row.end; tile += kTileRows) {
    load_keys_and_values(keys, values, from.qkv, grid, query_row, tile);
    float slope = 0;
    if (query_row.has_query && tile + lane <= query_row.position)
      slope = expf(grid.scale * dot(queries[warp], keys[lane], grid.width) - log) *
              (dot(grads[warp], values[lane], grid.width) - dot_product);
    slopes[warp][lane] = slope;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part)
      query_grad[part] = add_column(query_grad[part], slopes[warp], keys, part * kWarp + lane);
  }
  if (!query_row.has_query) return;
  add_row(grad + entry, query_grad, grid.scale, grid.width);
}

}  // namespace bubblescope::exec
