// Causal attention on tensor cores, in bfloat16 with float32 sums (Dao, "FlashAttention-2", 2023).
// Keys and values of the next tile are copied while this one is computed.
#pragma once

#include "exec/gpu/device/fragment_products.cuh"
#include "exec/gpu/device/running_softmax.cuh"

namespace bubblescope::exec {

/// The layout of shared memory. If queries stay in registers, the tiles of keys and values follow
/// them.
template <class Shape, bool kKeeps = Shape::kKeepsFirst>
struct ForwardParts {
  struct Tiles {
    FragmentTile<Shape::kTile, Shape::kWidth> keys[2], values[2];
  };
  union {
    FragmentTile<Shape::kBlockRows, Shape::kWidth> rows;
    Tiles tiles;
  };
};
template <class Shape>
struct ForwardParts<Shape, false> {
  FragmentTile<Shape::kBlockRows, Shape::kWidth> rows;
  typename ForwardParts<Shape, true>::Tiles tiles;
};

/// Divides by the sums of weights, and writes rows and logarithms.
template <class Shape>
__device__ void write_attention(Bfloat16* mixed, float* logs, ForwardParts<Shape>& shared,
                                const FragmentSums<Shape::kPieces, Shape::kWidth>& mix,
                                const RunningSoftmax<Shape::kPieces, Shape::kSlack>& softmax,
                                const AttentionGrid& grid) {
  const FragmentPlace at(Shape(), grid, grid.count, true);
  float inverse[Shape::kPieces][2];
  BUBBLESCOPE_UNROLL
  for (int row = 0; row < 2 * Shape::kPieces; ++row) {
    const int piece = row / 2, half = row % 2, query = at.row(piece, half);
    const float sum = reduce_row(softmax.sum[piece][half], Add());
    inverse[piece][half] = 1 / sum;
    if (query < grid.count && at.lane_column == 0)
      logs[entry_of_query(grid, at, query)] = softmax.shift[piece][half] / kLog2E + logf(sum);
  }
  __syncthreads();  // no warp reads the tiles any more
  put_sums(shared.rows, at, mix,
           [&](int piece, int half, float sum, Bfloat16) { return sum * inverse[piece][half]; });
  __syncthreads();
  store_tile<Shape::kThreads>(rows_of_queries(mixed, grid, at, at.first), shared.rows);
}

/// Does the same as attention_kernel, for heads of up to Shape::kWidth columns.
template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocks)
    fragment_attention_kernel(Bfloat16* mixed, float* logs, const Bfloat16* qkv,
                              AttentionGrid grid) {
  constexpr int kTile = Shape::kTile, kStep = Shape::kStep, kThreads = Shape::kThreads;
  auto& shared = shared_parts<ForwardParts<Shape>>();
  const FragmentPlace at(Shape(), grid, grid.count, true);
  const int last = at.first + Shape::kBlockRows;
  const int end = grid.begin + (last < grid.count ? last : grid.count);
  begin_tile<kThreads>(shared.rows, rows_of_qkv(qkv, grid, at, 0, grid.begin + at.first, end));
  await_tiles();
  const LeftRows<Shape::kPieces, Shape::kWidth, Shape::kKeepsFirst> queries(shared.rows, at.warp_row);
  if (Shape::kKeepsFirst) __syncthreads();  // tiles follow the queries
  using Copies = TileCopies<kThreads, kTile, Shape::kWidth, const Bfloat16>;
  Copies keys(rows_of_qkv(qkv, grid, at, 1, 0, end)), values(rows_of_qkv(qkv, grid, at, 2, 0, end));
  keys.begin(shared.tiles.keys[0], 0);
  values.begin(shared.tiles.values[0], 0);
  RunningSoftmax<Shape::kPieces, Shape::kSlack> softmax;
  FragmentSums<Shape::kPieces, Shape::kWidth> mix;
  // The first position to which no query of the warp attends.
  const int warp_end = grid.begin + at.first + at.warp_row + Shape::kWarpRows;
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
      mask_keys(scores, at, grid, tile + step);
      softmax.add(scores, mix, grid.scale * kLog2E);
      multiply_by_columns(mix, scores, shared.tiles.values[now], step);
    }
  }
  write_attention<Shape>(mixed, logs, shared, mix, softmax, grid);
}

}  // namespace bubblescope::exec
