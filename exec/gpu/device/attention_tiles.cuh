// Parts that the attention kernels share. Each warp handles one row: a query or, in the gradient of
// keys and values, a key. Its lanes split the rows of a tile for products over columns, and the
// columns for products over rows.
#pragma once

#include "exec/gpu/attention_grid.h"
#include "exec/gpu/device/dtype.cuh"

namespace bubblescope::exec {

inline constexpr int kTileRows = kWarp;  ///< one per lane
inline constexpr int kColumnsPerLane = kMaxHeadWidth / kWarp;

/// Rows of one head, padded so that products over columns have no bank conflicts.
using Tile = float[kTileRows][kMaxHeadWidth + 1];

/// The sequence and head of a block, and its first row.
struct HeadPlace {
  __device__ HeadPlace(const AttentionGrid& grid, int rows)
      : tiles((rows + kAttentionWarps - 1) / kAttentionWarps),
        first(static_cast<int>(blockIdx.x) % tiles * kAttentionWarps),
        head(static_cast<int>(blockIdx.x) / tiles % grid.heads),
        sequence(static_cast<int>(blockIdx.x) / tiles / grid.heads) {}

  int tiles;
  int first;
  int head;
  int sequence;
};

/// Returns the first entry of a head's row in a matrix of `thirds` * heads * width columns.
__device__ inline std::int64_t entry_of(const AttentionGrid& grid, std::int64_t row, int head,
                                        int third, int thirds) {
  const std::int64_t width = std::int64_t{grid.heads} * grid.width;
  return row * thirds * width + third * width + std::int64_t{head} * grid.width;
}

/// Fills a tile with all threads of the block; rows from `end` on become zero.
template <class Value>
__device__ void load_tile(Tile& tile, const Value* from, std::int64_t row_step, int end,
                          int width) {
  for (int at = threadIdx.x; at < kTileRows * width; at += blockDim.x) {
    const int row = at / width;
    tile[row][at % width] = row < end ? to_float(from[row * row_step + at % width]) : 0.0F;
  }
}

/// Fills a row of shared memory with the lanes of one warp, with zeros unless `is_there`.
template <class Value>
__device__ void load_row(float* row, const Value* from, int width, bool is_there) {
  for (int column = static_cast<int>(threadIdx.x) % kWarp; column < width; column += kWarp)
    row[column] = is_there ? to_float(from[column]) : 0.0F;
}

/// Returns sum + the weighted sum of a column.
__device__ inline float add_column(float sum, const float* weights, const Tile& tile, int column) {
  for (int row = 0; row < kTileRows; ++row) sum += weights[row] * tile[row][column];
  return sum;
}

__device__ inline float dot(const float* left, const float* right, int width) {
  float sum = 0;
  for (int column = 0; column < width; ++column) sum += left[column] * right[column];
  return sum;
}

/// Inputs of the backward kernels.
template <class Value>
struct AttentionBackward {
  const Value* qkv;
  const Value* mixed;
  const Value* mixed_grad;
  const float* logs;
};

template <class Value>
__device__ inline void add_to(Value& target, float value) {
  target = from_float<Value>(to_float(target) + value);
}

/// Adds to a row the columns that the lanes of a warp hold.
template <class Value>
__device__ void add_row(Value* row, const float* values, float scale, int width) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int part = 0; part * kWarp + lane < width; ++part)
    add_to(row[part * kWarp + lane], scale * values[part]);
}

}  // namespace bubblescope::exec
