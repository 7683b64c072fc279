// Element-wise and per-column kernels: embedding, GELU, sums. kernels.h describes each.
#pragma once

#include "exec/gpu/device/entries.cuh"
#include "exec/gpu/device/dtype.cuh"
#include "exec/gpu/kernels.h"

namespace bubblescope::exec {

template <class Value>
__global__ void embed_kernel(Value* target, const Value* embedding, const Value* position,
                             const std::int32_t* tokens, int columns, int period) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t token = tokens[row];
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    target[row * columns + column] =
        from_float<Value>(to_float(embedding[token * columns + column]) +
                          to_float(position[row % period * columns + column]));
}

inline constexpr int kEmbedParts = 64;  // a power of two

/// Adds in the order of the rows, so that equal runs give equal bits. A thread has a column; the
/// first block of a column tile adds to the tokens and positions 0, kEmbedParts, 2 * kEmbedParts and
/// so on, the second to 1, kEmbedParts + 1 and so on.
template <class Value>
__global__ void embed_grad_kernel(float* embedding, float* position, const Value* grad,
                                  const std::int32_t* tokens, int rows, int columns, int period) {
  const int part = static_cast<int>(blockIdx.x) % kEmbedParts;
  const std::int64_t column =
      static_cast<std::int64_t>(blockIdx.x) / kEmbedParts * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  int at = 0;  // row % period
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t token = tokens[row];
    const bool has_token = token % kEmbedParts == part, has_position = at % kEmbedParts == part;
    if (has_token || has_position) {
      const float value = to_float(grad[row * columns + column]);
      if (has_token) embedding[token * columns + column] += value;
      if (has_position) position[std::int64_t{at} * columns + column] += value;
    }
    if (++at == period) at = 0;
  }
}

inline constexpr int kGainRows = 8;

/// The block has kWarp columns by kGainRows threads, which split the rows.
template <class Value>
__global__ void gain_grad_kernel(float* target, const Value* input, const Value* grad,
                                 const float* inverses, int rows, int columns) {
  __shared__ float parts[kGainRows][kWarp];
  const int in_block = threadIdx.x % kWarp;
  const int part = threadIdx.x / kWarp;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kWarp + in_block;
  float sum = 0;
  for (std::int64_t row = part; row < rows && column < columns; row += kGainRows)
    sum += to_float(input[row * columns + column]) * inverses[row] *
           to_float(grad[row * columns + column]);
  parts[part][in_block] = sum;
  __syncthreads();
  if (part != 0 || column >= columns) return;
  for (int other = 1; other < kGainRows; ++other) sum += parts[other][in_block];
  target[column] = sum;
}

template <class Value>
__global__ void gelu_kernel(Value* target, const Value* input, std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    const float x = to_float(input[at]);
    target[at] =
        from_float<Value>(0.5F * x * (1 + tanhf(kGeluSlope * (x + kGeluCubic * x * x * x))));
  }
}

template <class Value>
__global__ void gelu_grad_kernel(Value* target, const Value* input, const Value* grad,
                                 std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) {
    const float x = to_float(input[at]);
    const float bent = tanhf(kGeluSlope * (x + kGeluCubic * x * x * x));
    const float slope = kGeluSlope * (1 + 3 * kGeluCubic * x * x);
    target[at] = from_float<Value>(to_float(grad[at]) *
                                   (0.5F * (1 + bent) + 0.5F * x * (1 - bent * bent) * slope));
  }
}

/// Runs as one block.
__global__ inline void mean_kernel(float* target, const float* values, int count) {
  float part = 0;
  for (int at = threadIdx.x; at < count; at += blockDim.x) part += values[at];
  const float sum = reduce_block(part, Add());
  if (threadIdx.x == 0) *target = sum / static_cast<float>(count);
}

__global__ inline void add_kernel(float* target, const float* values, std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) target[at] += values[at];
}

__global__ inline void scale_kernel(float* target, float factor, std::int64_t count) {
  for (std::int64_t at = first_entry(); at < count; at += entry_step()) target[at] *= factor;
}

}  // namespace bubblescope::exec
