// The gradient of attention's keys and values on tensor cores. A warp has 16 keys, whose rows are
// those of all products, so weights are computed transposed.
#pragma once

#include "exec/gpu/device/attention_tiles.cuh"
#include "exec/gpu/device/fragment_products.cuh"

namespace bubblescope::exec {

inline constexpr int kBackwardQueries = 32;  ///< of a tile

/// The data of a tile's queries, which all threads share.
struct QueryTileNumbers {
  float logs[kBackwardQueries];  ///< in powers of two
  float dots[kBackwardQueries];
};

__device__ inline void load_numbers(QueryTileNumbers& numbers, const float* logs, const float* dots,
                                    const AttentionGrid& grid, const FragmentPlace& at, int tile) {
  const int query = tile + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= kBackwardQueries || query >= grid.count) return;
  numbers.logs[threadIdx.x] = logs[entry_of_query(grid, at, query)] * kLog2E;
  numbers.dots[threadIdx.x] = dots[entry_of_query(grid, at, query)];
}

/// Replaces scores by weights.
template <int kColumns>
__device__ void weigh_scores(float (&scores)[kColumns][4], const QueryTileNumbers& numbers,
                             const AttentionGrid& grid, const FragmentPlace& at, int tile) {
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kColumns; ++part)
    BUBBLESCOPE_UNROLL
    for (int each = 0; each < 4; ++each) {
      const int column = part * kFragmentColumns + at.lane_column + each % 2;
      const int query = tile + column;
      const bool counts = query < grid.count && at.row(each / 2) <= grid.begin + query;
      const float weight =
          power_of_two(scores[part][each] * (grid.scale * kLog2E) - numbers.logs[column]);
      scores[part][each] = counts ? weight : 0.0F;
    }
}

/// As key_grad_kernel, for heads of up to kWidth columns.
template <int kWidth>
__global__ void __launch_bounds__(kFragmentWarps * kWarp)
    fragment_key_grad_kernel(Bfloat16* grad, const float* dots, AttentionBackward<Bfloat16> from,
                             AttentionGrid grid) {
  __shared__ FragmentTile<kBlockRows, kWidth> values;
  __shared__ FragmentTile<kBackwardQueries, kWidth> queries, mixed_grads;
  __shared__ QueryTileNumbers numbers;
  const int end = grid.begin + grid.count;
  const FragmentPlace at(grid, end, false);
  begin_tile(values, rows_of_qkv(from.qkv, grid, at, 1, at.first, end));
  await_tiles();
  std::uint32_t keys[kWidth / kFragmentRows][4];
  BUBBLESCOPE_UNROLL
  for (int part = 0; part < kWidth / kFragmentRows; ++part)
    load_left(keys[part], values, at.warp_row, part * kFragmentRows);
  __syncthreads();  // the tile of values has the keys until here
  begin_tile(values, rows_of_qkv(from.qkv, grid, at, 2, at.first, end));
  float key_grad[kWidth / kFragmentColumns][4] = {}, value_grad[kWidth / kFragmentColumns][4] = {};
  // The first query that attends to any key of the block.
  const int first = at.first > grid.begin ? at.first - grid.begin : 0;
  for (int tile = first; tile < grid.count; tile += kBackwardQueries) {
    begin_tile(queries, rows_of_qkv(from.qkv, grid, at, 0, grid.begin + tile, end));
    begin_tile(mixed_grads, rows_of_queries(from.mixed_grad, grid, at, tile));
    load_numbers(numbers, from.logs, dots, grid, at, tile);
    await_tiles();
    float weights[kBackwardQueries / kFragmentColumns][4] = {};
    multiply_by_rows(weights, queries, [&](std::uint32_t(&left)[4], int column) {
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each) left[each] = keys[column / kFragmentRows][each];
    });
    weigh_scores(weights, numbers, grid, at, tile);
    multiply_by_columns(value_grad, weights, mixed_grads);
    float slopes[kBackwardQueries / kFragmentColumns][4] = {};
    multiply_by_rows(slopes, mixed_grads, [&](std::uint32_t(&left)[4], int column) {
      load_left(left, values, at.warp_row, column);
    });
    BUBBLESCOPE_UNROLL
    for (int part = 0; part < kBackwardQueries / kFragmentColumns; ++part)
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each) {
        const int column = part * kFragmentColumns + at.lane_column + each % 2;
        const float weight = weights[part][each];  // 0 where there is no query
        slopes[part][each] =
            weight == 0.0F ? 0.0F : weight * (slopes[part][each] - numbers.dots[column]);
      }
    multiply_by_columns(key_grad, slopes, queries);
    __syncthreads();  // the tiles get the next queries
  }
  const auto row_of = [&](int third) {
    return [&, third](int half) {
      return at.row(half) < end ? grad + entry_of_qkv(grid, at, third, at.row(half)) : nullptr;
    };
  };
  add_sums(key_grad, grid.scale, at, grid.width, row_of(1));
  add_sums(value_grad, 1, at, grid.width, row_of(2));
}

}  // namespace bubblescope::exec
