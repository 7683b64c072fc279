// Causal attention without storing its weights (Dao et al., "FlashAttention", 2022): scores are
// computed tile by tile, with a running maximum and sum for the softmax. Only the logarithm of each
// row's sum is kept, from which the backward recomputes the weights.
#pragma once

#include "exec/gpu/device/query_rows.cuh"

namespace bubblescope::exec {

/// Computes mixed = softmax(queries * keys^T * scale) * values for the given queries. `logs`
/// receives, per row, the logarithm of the sum of the exponentials.
template <class Value>
__global__ void attention_kernel(Value* mixed, float* logs, const Value* qkv, AttentionGrid grid) {
  __shared__ Tile keys, values;
  __shared__ float queries[kAttentionWarps][kMaxHeadWidth], weights[kAttentionWarps][kTileRows];
  const QueryRow query_row(grid);
  const int warp = query_row.warp, lane = query_row.lane;
  load_row(queries[warp], qkv + entry_of(grid, query_row.first_row + query_row.position, query_row.at.head, 0, 3),
           grid.width, query_row.has_query);
  float largest = -INFINITY, sum = 0, mix[kColumnsPerLane] = {};
  for (int tile = 0; tile < query_row.end; tile += kTileRows) {
    load_keys_and_values(keys, values, qkv, grid, query_row, tile);
    const bool counts = query_row.has_query && tile + lane <= query_row.position;
    const float score =
        counts ? grid.scale * dot(queries[warp], keys[lane], grid.width) : -INFINITY;
    const float highest = Max()(largest, reduce_warp(score, Max()));
    const float weight = counts ? expf(score - highest) : 0.0F;
    const float shrink = query_row.has_query ? expf(largest - highest) : 0.0F;  // 0 for the first tile
    sum = sum * shrink + reduce_warp(weight, Add());
    largest = highest;
    weights[warp][lane] = weight;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part)
      mix[part] = add_column(mix[part] * shrink, weights[warp], values, part * kWarp + lane);
  }
  if (!query_row.has_query) return;
  for (int part = 0; part * kWarp + lane < grid.width; ++part)
    mixed[entry_of(grid, query_row.mixed_row, query_row.at.head, 0, 1) + part * kWarp + lane] =
        from_float<Value>(mix[part] / sum);
  if (lane == 0) logs[query_row.mixed_row * grid.heads + query_row.at.head] = largest + logf(sum);
}

}  // namespace bubblescope::exec
