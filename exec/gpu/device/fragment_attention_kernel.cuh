// Causal attention on tensor cores, in bfloat16 with float32 sums (Dao, "FlashAttention-2", 2023).
// A warp has 16 queries. Keys of the next tile are copied while the values of this one are mixed,
// and values while the scores are computed.
#pragma once

#include "exec/gpu/device/fragment_products.cuh"

namespace bubblescope::exec {

inline constexpr int kForwardKeys = 64;  ///< of a tile

/// The softmax of a lane's two rows so far. Powers are of two, of scores times scale * log2(e).
struct RunningSoftmax {
  float largest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};  ///< over this lane's columns

  /// Replaces the scores by weights, and the factor of what was summed up before by `shrink`.
  template <int kColumns>
  __device__ void add(float (&scores)[kColumns][4], float scale, float (&shrink)[2]) {
    BUBBLESCOPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      float highest = largest[half];
      BUBBLESCOPE_UNROLL
      for (int part = 0; part < kColumns; ++part)
        highest = Max()(highest, Max()(scores[part][2 * half], scores[part][2 * half + 1]));
      highest = reduce_row(highest, Max());
      const float shift = highest == -INFINITY ? 0.0F : highest * scale;
      shrink[half] = power_of_two(largest[half] * scale - shift);
      largest[half] = highest;
      float added = 0;
      BUBBLESCOPE_UNROLL
      for (int part = 0; part < kColumns; ++part)
        BUBBLESCOPE_UNROLL
        for (int each = 2 * half; each < 2 * half + 2; ++each) {
          scores[part][each] = power_of_two(scores[part][each] * scale - shift);
          added += scores[part][each];
        }
      sum[half] = sum[half] * shrink[half] + added;
    }
  }
};

/// Sets scores to minus infinity where the key is after the query.
template <int kColumns>
__device__ void mask_scores(float (&scores)[kColumns][4], const FragmentPlace& at,
                            const AttentionGrid& grid, int tile) {
  if (tile + kForwardKeys <= grid.begin + at.first) return;  // all are before
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kColumns; ++part)
    BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      const int key = tile + part * kFragmentColumns + at.lane_column + each % 2;
      if (key > grid.begin + at.row(each / 2)) scores[part][each] = -INFINITY;
    }
}

/// As attention_kernel, for heads of up to kWidth columns.
template <int kWidth>
__global__ void __launch_bounds__(kFragmentWarps * kWarp)
    fragment_attention_kernel(Bfloat16* mixed, float* logs, const Bfloat16* qkv,
                              AttentionGrid grid) {
  __shared__ FragmentTile<kForwardKeys, kWidth> keys, values;
  static_assert(kForwardKeys == kBlockRows, "queries pass through the tile of keys");
  const FragmentPlace at(grid, grid.count, true);
  const int end = grid.begin + (at.first + kBlockRows < grid.count ? at.first + kBlockRows : grid.count);
  begin_tile(
      keys, rows_of_qkv(qkv, grid, at, 0, grid.begin + at.first, grid.begin + grid.count));
  await_tiles();
  std::uint32_t queries[kWidth / kFragmentRows][4];
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kWidth / kFragmentRows; ++part)
    load_left(queries[part], keys, at.warp_row, part * kFragmentRows);
  __syncthreads();  // the tile gets keys
  const HeadRows all_keys = rows_of_qkv(qkv, grid, at, 1, 0, end);
  const HeadRows all_values = rows_of_qkv(qkv, grid, at, 2, 0, end);
  begin_tile(keys, all_keys);
  RunningSoftmax softmax;
  float mix[kWidth / kFragmentColumns][4] = {};
  const float scale = grid.scale * kLog2E;
  for (int tile = 0; tile < end; tile += kForwardKeys) {
    await_tiles();  // the keys are there, and all warps have mixed the values before
    begin_tile(values, all_values.after(tile));
    float scores[kForwardKeys / kFragmentColumns][4] = {};
    multiply_by_rows(scores, keys, [&](std::uint32_t(&left)[4], int column) {
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each) left[each] = queries[column / kFragmentRows][each];
    });
    mask_scores(scores, at, grid, tile);
    float shrink[2];
    softmax.add(scores, scale, shrink);
    BUBBLESCOPE_UNROLL
    for (int part = 0; part < kWidth / kFragmentColumns; ++part)
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each) mix[part][each] *= shrink[each / 2];
    await_tiles();  // the values are there, and no warp reads the keys any more
    if (tile + kForwardKeys < end)
      begin_tile(keys, all_keys.after(tile + kForwardKeys));
    multiply_by_columns(mix, scores, values);
  }
  float inverse[2];
  BUBBLESCOPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float sum = reduce_row(softmax.sum[half], Add());
    inverse[half] = 1 / sum;
    const int query = at.row(half);
    if (query < grid.count && at.lane_column == 0)
      logs[entry_of_query(grid, at, query)] = softmax.largest[half] * grid.scale + logf(sum);
  }
  const auto row_of = [&](int half) {
    return at.row(half) < grid.count ? mixed + entry_of_mixed(grid, at, at.row(half)) : nullptr;
  };
  write_sums(mix, at, grid.width, row_of,
             [&](int half, float sum, Bfloat16) { return sum * inverse[half]; });
}

}  // namespace bubblescope::exec
