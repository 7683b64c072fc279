// Causal attention without its weights in memory (Dao et al., "FlashAttention", 2022): scores are
// made tile by tile, and a running largest score and sum stand in for the softmax. What is kept of
// a row is the logarithm of its sum, from which the backward makes its weights again.
#pragma once

#include "exec/gpu/attention_tiles.cuh"

namespace bubblescope {

/// mixed = softmax(queries * keys^T * scale) * values for the asking positions; logs: per row, the
/// logarithm of the sum of its exponentials.
template <class Value>
__global__ void attention_kernel(Value* mixed, float* logs, const Value* qkv, AttentionGrid grid) {
  __shared__ Tile keys, values;
  __shared__ float queries[kAttentionWarps][kMostHeadWidth], weights[kAttentionWarps][kTileRows];
  const HeadPlace at(grid, grid.count);
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int query = at.first + warp;
  const bool asks = query < grid.count;
  const int position = grid.begin + query;
  const std::int64_t first_row = std::int64_t{at.sequence} * grid.sequence;
  const std::int64_t step = 3 * std::int64_t{grid.heads} * grid.width;
  for (int column = lane; column < grid.width; column += kWarp)
    queries[warp][column] =
        asks ? to_float(qkv[entry_of(grid, first_row + position, at.head, 0, 3) + column]) : 0.0F;
  const int end = grid.begin + (at.first + kAttentionWarps < grid.count ? at.first + kAttentionWarps
                                                                        : grid.count);
  float largest = -INFINITY, sum = 0, mix[kColumnsPerLane] = {};
  for (int tile = 0; tile < end; tile += kTileRows) {
    __syncthreads();  // everybody has done with the tile before
    load_tile(keys, qkv + entry_of(grid, first_row + tile, at.head, 1, 3), step, end - tile,
              grid.width);
    load_tile(values, qkv + entry_of(grid, first_row + tile, at.head, 2, 3), step, end - tile,
              grid.width);
    __syncthreads();
    const bool counts = asks && tile + lane <= position;
    const float score =
        counts ? grid.scale * dot(queries[warp], keys[lane], grid.width) : -INFINITY;
    const float highest = Larger()(largest, over_warp(score, Larger()));
    const float weight = counts ? expf(score - highest) : 0.0F;
    const float shrink = asks ? expf(largest - highest) : 0.0F;  // 0 for the first tile
    sum = sum * shrink + over_warp(weight, Add());
    largest = highest;
    weights[warp][lane] = weight;
    __syncthreads();
    for (int part = 0; part * kWarp + lane < grid.width; ++part) {
      mix[part] *= shrink;
      for (int row = 0; row < kTileRows; ++row)
        mix[part] += weights[warp][row] * values[row][part * kWarp + lane];
    }
  }
  if (!asks) return;
  const std::int64_t row = std::int64_t{at.sequence} * grid.count + query;
  for (int part = 0; part * kWarp + lane < grid.width; ++part)
    mixed[entry_of(grid, row, at.head, 0, 1) + part * kWarp + lane] =
        from_float<Value>(mix[part] / sum);
  if (lane == 0) logs[row * grid.heads + at.head] = largest + logf(sum);
}

}  // namespace bubblescope
