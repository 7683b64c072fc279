// Tiles of queries in the gradient of keys and values, whose columns they are.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"
#include "exec/gpu/device/fragment_sums.cuh"

namespace bubblescope::exec {

/// The queries of a tile.
template <int kTile, int kWidth>
struct QueryTile {
  FragmentTile<kTile, kWidth> queries, mixed_grads;
  float logs[kTile];
  float dots[kTile];
};

/// A thread's part of the copies to such tiles.
template <int kThreads, int kTile, int kWidth>
struct QueryCopies {
  TileCopies<kThreads, kTile, kWidth, const Bfloat16> queries, mixed_grads;
  const float* log;  ///< of the thread's query in the next tile
  const float* dot;
  std::int64_t step;  ///< to that of the tile after

  __device__ QueryCopies(const AttentionBackward<Bfloat16>& from, const float* dots,
                         const AttentionGrid& grid, const FragmentPlace& at, int first)
      : queries(rows_of_qkv(from.qkv, grid, at, 0, grid.begin + first, grid.begin + grid.count)),
        mixed_grads(rows_of_queries(from.mixed_grad, grid, at, first)),
        log(from.logs + entry_of_query(grid, at, first + static_cast<int>(threadIdx.x))),
        dot(dots + (log - from.logs)),
        step(std::int64_t{kTile} * grid.heads) {
    static_assert(kTile <= kThreads, "a thread copies the numbers of one query");
  }

  /// Begins to copy a tile of `count` queries in all, of which `next` were copied before.
  __device__ void begin(QueryTile<kTile, kWidth>& tile, int next, int count) {
    queries.begin(tile.queries, next);
    mixed_grads.begin(tile.mixed_grads, next);
    const int own = static_cast<int>(threadIdx.x);
    if (own >= kTile) return;
    begin_copy(&tile.logs[own], log, next + own < count);
    begin_copy(&tile.dots[own], dot, next + own < count);
    log += step;
    dot += step;
  }
};

/// Replaces scores by weights. Where there is no query, weights are 1, but what they are multiplied
/// by is 0. `logs` are those of the columns.
template <int kPieces, int kStep>
__device__ void weigh_scores(FragmentSums<kPieces, kStep>& scores, const float* logs, float scale,
                             const FragmentPlace& at) {
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kStep / kFragmentColumns; ++part) {
    const auto log = load_chunk<2>(logs + part * kFragmentColumns + at.lane_column);
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      float& score = scores.of[piece][part][each];
      score = power_of_two(score * scale - log.values[each % 2] * kLog2E);
    }
  }
}

/// Replaces gradients of weights by gradients of scores.
template <int kPieces, int kStep>
__device__ void pull_back_weights(FragmentSums<kPieces, kStep>& grads,
                                  const FragmentSums<kPieces, kStep>& weights, const float* dots,
                                  const FragmentPlace& at) {
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kStep / kFragmentColumns; ++part) {
    const Chunk<2, float> dot = load_chunk<2>(dots + part * kFragmentColumns + at.lane_column);
    BUBBLESCOPE_UNROLL
    for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      float& grad = grads.of[piece][part][each];
      grad = weights.of[piece][part][each] * (grad - dot.values[each % 2]);
    }
  }
}

}  // namespace bubblescope::exec
