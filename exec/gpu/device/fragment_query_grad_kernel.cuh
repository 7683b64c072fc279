// The gradient of attention's queries on tensor cores. Keys and values of the next tile are copied
// while this one is computed.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"
#include "exec/gpu/device/fragment_queries.cuh"

namespace bubblescope::exec {

/// The layout of shared memory. Tiles overwrite data that warps have moved to registers or have
/// read already.
template <class Shape, bool kKeeps = Shape::kKeepsSecond>
struct QueryGradParts {
  using Rows = FragmentTile<Shape::kBlockRows, Shape::kWidth>;
  struct OwnRows {
    Rows mixed, queries, grads;
  };
  struct Tiles {
    FragmentTile<Shape::kTile, Shape::kWidth> keys[2], values[2];
  };
  union {
    OwnRows own;
    Tiles tiles;
  };
  __device__ Rows& mixed() { return own.mixed; }
  __device__ Rows& queries() { return own.queries; }
  __device__ Rows& grads() { return own.grads; }
};
template <class Shape>
struct QueryGradParts<Shape, false> {
  using Rows = typename QueryGradParts<Shape, true>::Rows;
  union {
    Rows mixed_rows;
    typename QueryGradParts<Shape, true>::Tiles tiles;
  };
  Rows query_rows, grad_rows;
  __device__ Rows& mixed() { return mixed_rows; }
  __device__ Rows& queries() { return query_rows; }
  __device__ Rows& grads() { return grad_rows; }
};

/// Adds sums to the gradient. The rows of shared memory may be where the tiles were.
template <class Shape>
__device__ void add_query_grad(Bfloat16* grad, FragmentTile<Shape::kBlockRows, Shape::kWidth>& rows,
                               const FragmentSums<Shape::kPieces, Shape::kWidth>& query_grad,
                               const AttentionGrid& grid) {
  const FragmentPlace at(Shape(), grid, grid.count, true);
  const auto target =
      rows_of_qkv(grad, grid, at, 0, grid.begin + at.first, grid.begin + grid.count);
  __syncthreads();  // no warp reads the tiles any more
  begin_tile<Shape::kThreads>(rows, target);
  await_tiles();
  add_sums(rows, at, query_grad, grid.scale);
  __syncthreads();
  store_tile<Shape::kThreads>(target, rows);
}

/// Does the same as query_grad_kernel, for heads of up to Shape::kWidth columns.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    fragment_query_grad_kernel(Bfloat16* grad, float* dots, AttentionBackward<Bfloat16> from,
                               AttentionGrid grid) {
  constexpr int kTile = Shape::kTile, kStep = Shape::kStep, kThreads = Shape::kThreads;
  constexpr int kPieces = Shape::kPieces, kWidth = Shape::kWidth;
  auto& shared = shared_parts<QueryGradParts<Shape>>();
  const FragmentPlace at(Shape(), grid, grid.count, true);
  const int last = at.first + Shape::kBlockRows, position = grid.begin + at.first;
  const int end = grid.begin + (last < grid.count ? last : grid.count);
  begin_tile<kThreads>(shared.queries(), rows_of_qkv(from.qkv, grid, at, 0, position, end));
  begin_tile<kThreads>(shared.grads(), rows_of_queries(from.mixed_grad, grid, at, at.first));
  begin_tile<kThreads>(shared.mixed(), rows_of_queries(from.mixed, grid, at, at.first));
  await_tiles();
  const LeftRows<kPieces, kWidth, Shape::kKeepsFirst> queries(shared.queries(), at.warp_row);
  const LeftRows<kPieces, kWidth, Shape::kKeepsSecond> grads(shared.grads(), at.warp_row);
  const FragmentQueries<kPieces> known =
      find_queries(grads, LeftRows<kPieces, kWidth, false>(shared.mixed(), at.warp_row), from.logs,
                   dots, grid, at);
  __syncthreads();  // the tiles follow the rows
  using Copies = TileCopies<kThreads, kTile, kWidth, const Bfloat16>;
  Copies keys(rows_of_qkv(from.qkv, grid, at, 1, 0, end));
  Copies values(rows_of_qkv(from.qkv, grid, at, 2, 0, end));
  keys.begin(shared.tiles.keys[0], 0);
  values.begin(shared.tiles.values[0], 0);
  FragmentSums<kPieces, kWidth> query_grad;
  // The first position to which no query of the warp attends.
  const int warp_end = position + at.warp_row + Shape::kWarpRows;
  for (int tile = 0, now = 0; tile < end; tile += kTile, now ^= 1) {
    await_tiles();  // and no warp reads the other tiles any more
    if (tile + kTile < end) {
      keys.begin(shared.tiles.keys[now ^ 1], tile + kTile);
      values.begin(shared.tiles.values[now ^ 1], tile + kTile);
    }
    BUBBLESCOPE_ROLLED
    for (int step = 0; step < kTile; step += kStep) {
      if (tile + step >= warp_end) break;
      auto scores = multiply_by_rows<kStep>(queries, shared.tiles.keys[now], step);
      const auto weight_grads = multiply_by_rows<kStep>(grads, shared.tiles.values[now], step);
      mask_keys(scores, at, grid, tile + step);
      pull_back_scores(scores, weight_grads, known, grid.scale * kLog2E);
      multiply_by_columns(query_grad, scores, shared.tiles.keys[now], step);
    }
  }
  add_query_grad<Shape>(grad, shared.queries(), query_grad, grid);
}

}  // namespace bubblescope::exec
