// The gradient of attention's keys and values on tensor cores. Rows of all products are keys, so
// weights are computed transposed. Queries of the next tile are copied while this one is computed.
#pragma once

#include "exec/gpu/device/fragment_products.cuh"
#include "exec/gpu/device/query_tiles.cuh"

namespace bubblescope::exec {

/// The layout of shared memory. If keys and values stay in registers, the tiles of queries follow
/// them.
template <class Shape, bool kKeeps = Shape::kKeepsSecond>
struct KeyGradParts {
  struct Rows {
    FragmentTile<Shape::kBlockRows, Shape::kWidth> keys, values;
  };
  union {
    Rows rows;
    QueryTile<Shape::kTile, Shape::kWidth> tiles[2];
  };
};
template <class Shape>
struct KeyGradParts<Shape, false> {
  typename KeyGradParts<Shape, true>::Rows rows;
  QueryTile<Shape::kTile, Shape::kWidth> tiles[2];
};

/// Adds sums to the gradient. The rows of shared memory may be where the tiles were.
template <class Shape>
__device__ void add_key_grads(Bfloat16* grad, typename KeyGradParts<Shape, true>::Rows& rows,
                              const FragmentSums<Shape::kPieces, Shape::kWidth>& key_grad,
                              const FragmentSums<Shape::kPieces, Shape::kWidth>& value_grad,
                              const AttentionGrid& grid) {
  const int end = grid.begin + grid.count;
  const FragmentPlace at(Shape(), grid, end, false);
  const auto keys = rows_of_qkv(grad, grid, at, 1, at.first, end);
  const auto values = rows_of_qkv(grad, grid, at, 2, at.first, end);
  __syncthreads();  // no warp reads the tiles any more
  begin_tile<Shape::kThreads>(rows.keys, keys);
  begin_tile<Shape::kThreads>(rows.values, values);
  await_tiles();
  add_sums(rows.keys, at, key_grad, grid.scale);
  add_sums(rows.values, at, value_grad, 1);
  __syncthreads();
  store_tile<Shape::kThreads>(keys, rows.keys);
  store_tile<Shape::kThreads>(values, rows.values);
}

/// Does the same as key_grad_kernel, for heads of up to Shape::kWidth columns.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    fragment_key_grad_kernel(Bfloat16* grad, const float* dots, AttentionBackward<Bfloat16> from,
                             AttentionGrid grid) {
  constexpr int kTile = Shape::kTile, kStep = Shape::kStep, kThreads = Shape::kThreads;
  constexpr int kPieces = Shape::kPieces, kWidth = Shape::kWidth;
  auto& shared = shared_parts<KeyGradParts<Shape>>();
  auto& rows = shared.rows;
  auto& tiles = shared.tiles;
  const int end = grid.begin + grid.count;
  const FragmentPlace at(Shape(), grid, end, false);
  begin_tile<kThreads>(rows.keys, rows_of_qkv(from.qkv, grid, at, 1, at.first, end));
  begin_tile<kThreads>(rows.values, rows_of_qkv(from.qkv, grid, at, 2, at.first, end));
  await_tiles();
  const LeftRows<kPieces, kWidth, Shape::kKeepsFirst> keys(rows.keys, at.warp_row);
  const LeftRows<kPieces, kWidth, Shape::kKeepsSecond> values(rows.values, at.warp_row);
  if (Shape::kKeepsSecond) __syncthreads();  // the tiles follow the rows
  // The first query that attends to any key of the block.
  const int first = at.first > grid.begin ? at.first - grid.begin : 0;
  QueryCopies<kThreads, kTile, kWidth> copies(from, dots, grid, at, first);
  copies.begin(tiles[0], 0, grid.count - first);
  FragmentSums<kPieces, kWidth> key_grad, value_grad;
  for (int tile = first, now = 0; tile < grid.count; tile += kTile, now ^= 1) {
    await_tiles();  // and no warp reads the other tile any more
    if (tile + kTile < grid.count)
      copies.begin(tiles[now ^ 1], tile + kTile - first, grid.count - first);
    auto& own = tiles[now];
    BUBBLESCOPE_ROLLED
    for (int step = 0; step < kTile; step += kStep) {
      if (grid.begin + tile + step + kStep <= at.first + at.warp_row) continue;  // before all keys
      auto weights = multiply_by_rows<kStep>(keys, own.queries, step);
      auto slopes = multiply_by_rows<kStep>(values, own.mixed_grads, step);
      mask_queries(weights, at, grid, tile + step);
      weigh_scores(weights, own.logs + step, grid.scale * kLog2E, at);
      multiply_by_columns(value_grad, weights, own.mixed_grads, step);
      pull_back_weights(slopes, weights, own.dots + step, at);
      multiply_by_columns(key_grad, slopes, own.queries, step);
    }
  }
  add_key_grads<Shape>(grad, rows, key_grad, value_grad, grid);
}

}  // namespace bubblescope::exec
