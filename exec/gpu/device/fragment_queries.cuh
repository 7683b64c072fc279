// The queries of a warp in the gradient of queries: one logarithm and one dot product for each,
// with which scores become their gradients.
#pragma once

#include "exec/gpu/device/fragment_products.cuh"

namespace bubblescope::exec {

/// The data of a lane's queries.
template <int kPieces>
struct FragmentQueries {
  float log[kPieces][2];  ///< in powers of two
  float dot[kPieces][2];
};

/// Returns the dot product of two registers of numbers, added to `sum`.
__device__ inline float add_products(float sum, std::uint32_t left, std::uint32_t right) {
  sum += __uint_as_float(left << 16) * __uint_as_float(right << 16);
  return sum + __uint_as_float(left & 0xffff0000u) * __uint_as_float(right & 0xffff0000u);
}

/// Reads the logarithms, and writes the dot products of two left operands: mixed and its gradient.
template <int kPieces, int kWidth, bool kKeeps>
__device__ FragmentQueries<kPieces> find_queries(const LeftRows<kPieces, kWidth, kKeeps>& grads,
                                                 const LeftRows<kPieces, kWidth, false>& mixed,
                                                 const float* logs, float* dots,
                                                 const AttentionGrid& grid,
                                                 const FragmentPlace& at) {
  FragmentQueries<kPieces> queries{};
  BUBBLESCOPE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) {
    BUBBLESCOPE_UNROLL
    for (int column = 0; column < kWidth; column += kFragmentRows) {
      std::uint32_t left[4], right[4];
      grads.load(left, piece, column);
      mixed.load(right, piece, column);
      BUBBLESCOPE_UNROLL
      for (int each = 0; each < 4; ++each)  // [1] and [3] are of the second row
        queries.dot[piece][each % 2] =
            add_products(queries.dot[piece][each % 2], left[each], right[each]);
    }
    BUBBLESCOPE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int query = at.row(piece, half);
      const bool has_query = query < grid.count;
      const float dot = reduce_row(queries.dot[piece][half], Add());
      queries.dot[piece][half] = dot;
      if (has_query) queries.log[piece][half] = logs[entry_of_query(grid, at, query)] * kLog2E;
      if (has_query && at.lane_column == 0) dots[entry_of_query(grid, at, query)] = dot;
    }
  }
  return queries;
}

/// Replaces scores by their gradients: weight * (gradient of weight - dot).
template <int kPieces, int kStep>
__device__ void pull_back_scores(FragmentSums<kPieces, kStep>& scores,
                                 const FragmentSums<kPieces, kStep>& weight_grads,
                                 const FragmentQueries<kPieces>& queries, float scale) {
  BUBBLESCOPE_UNROLL
  for (int piece = 0; piece < kPieces; ++piece) BUBBLESCOPE_UNROLL
  for (int part = 0; part < kStep / kFragmentColumns; ++part) BUBBLESCOPE_UNROLL
  for (int each = 0; each < 4; ++each) {
    float& score = scores.of[piece][part][each];
    score = power_of_two(score * scale - queries.log[piece][each / 2]) *
            (weight_grads.of[piece][part][each] - queries.dot[piece][each / 2]);
  }
}

}  // namespace bubblescope::exec
