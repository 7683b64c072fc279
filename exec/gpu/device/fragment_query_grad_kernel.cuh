// The gradient of attention's queries on tensor cores. A warp has 16 queries. Keys are copied while
// the gradients of weights are computed, and values while those of queries are.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"
#include "exec/gpu/device/fragment_products.cuh"

namespace bubblescope::exec {

/// Keys of a tile: what registers allow.
template <int kWidth>
inline constexpr int kBackwardKeys = kWidth > 64 ? 32 : 64;

/// The dot product of a row of mixed and its gradient; four lanes share it.
__device__ inline float dot_of_query(const AttentionBackward<Bfloat16>& from, std::int64_t entry,
                                     int width) {
  float sum = 0;
  for (int column = static_cast<int>(threadIdx.x) % 4; column < width; column += 4)
    sum += to_float(from.mixed[entry + column]) * to_float(from.mixed_grad[entry + column]);
  return reduce_row(sum, Add());
}

/// The data of the two queries of a lane.
struct FragmentQueries {
  float log[2];  ///< in powers of two
  float dot[2];
};

/// Reads the logarithms, and writes the dot products.
__device__ inline FragmentQueries find_queries(const AttentionBackward<Bfloat16>& from, float* dots,
                                               const AttentionGrid& grid, const FragmentPlace& at) {
  FragmentQueries queries{};
  BUBBLESCOPE_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int query = at.row(half);
    const bool has_query = query < grid.count;
    const int known = has_query ? query : 0;  // all lanes of a warp take part in the reduction
    queries.dot[half] = dot_of_query(from, entry_of_mixed(grid, at, known), grid.width);
    queries.log[half] = from.logs[entry_of_query(grid, at, known)] * kLog2E;
    if (has_query && at.lane_column == 0)
      dots[entry_of_query(grid, at, query)] = queries.dot[half];
  }
  return queries;
}

/// Replaces scores by the gradients of scores: weight * (gradient of weight - dot).
template <int kColumns>
__device__ void pull_back_scores(float (&scores)[kColumns][4],
                                 const float (&weight_grads)[kColumns][4],
                                 const FragmentQueries& queries, const AttentionGrid& grid,
                                 const FragmentPlace& at, int tile) {
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kColumns; ++part)
    BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      const int half = each / 2, query = at.row(half);
      const int key = tile + part * kFragmentColumns + at.lane_column + each % 2;
      const bool counts = query < grid.count && key <= grid.begin + query;
      const float weight =
          power_of_two(scores[part][each] * (grid.scale * kLog2E) - queries.log[half]);
      scores[part][each] =
          counts ? weight * (weight_grads[part][each] - queries.dot[half]) : 0.0F;
    }
}

/// As query_grad_kernel, for heads of up to kWidth columns.
template <int kWidth>
__global__ void __launch_bounds__(kFragmentWarps * kWarp)
    fragment_query_grad_kernel(Bfloat16* grad, float* dots, AttentionBackward<Bfloat16> from,
                               AttentionGrid grid) {
  constexpr int kKeys = kBackwardKeys<kWidth>;
  __shared__ FragmentTile<kBlockRows, kWidth> rows;
  __shared__ FragmentTile<kKeys, kWidth> keys, values;
  const FragmentPlace at(grid, grid.count, true);
  const int end = grid.begin + (at.first + kBlockRows < grid.count ? at.first + kBlockRows : grid.count);
  const HeadRows all_keys = rows_of_qkv(from.qkv, grid, at, 1, 0, end);
  const HeadRows all_values = rows_of_qkv(from.qkv, grid, at, 2, 0, end);
  begin_tile(rows,
             rows_of_qkv(from.qkv, grid, at, 0, grid.begin + at.first, grid.begin + grid.count));
  begin_tile(values, all_values);
  await_tiles();
  std::uint32_t queries[kWidth / kFragmentRows][4];
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kWidth / kFragmentRows; ++part)
    load_left(queries[part], rows, at.warp_row, part * kFragmentRows);
  __syncthreads();  // the rows get the gradients of mixed
  begin_tile(rows, rows_of_queries(from.mixed_grad, grid, at, at.first));
  const FragmentQueries known = find_queries(from, dots, grid, at);
  float query_grad[kWidth / kFragmentColumns][4] = {};
  for (int tile = 0; tile < end; tile += kKeys) {
    await_tiles();  // the values are there, and no warp reads the keys any more
    begin_tile(keys, all_keys.after(tile));
    float weight_grads[kKeys / kFragmentColumns][4] = {};
    multiply_by_rows(weight_grads, values, [&](std::uint32_t(&left)[4], int column) {
      load_left(left, rows, at.warp_row, column);
    });
    await_tiles();  // the keys are there, and no warp reads the values any more
    if (tile + kKeys < end) begin_tile(values, all_values.after(tile + kKeys));
    float scores[kKeys / kFragmentColumns][4] = {};
    multiply_by_rows(scores, keys, [&](std::uint32_t(&left)[4], int column) {
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each) left[each] = queries[column / kFragmentRows][each];
    });
    pull_back_scores(scores, weight_grads, known, grid, at, tile);
    multiply_by_columns(query_grad, scores, keys);
  }
  add_sums(query_grad, grid.scale, at, grid.width, [&](int half) {
    const int query = at.row(half);
    return query < grid.count ? grad + entry_of_qkv(grid, at, 0, grid.begin + query) : nullptr;
  });
}

}  // namespace bubblescope::exec
