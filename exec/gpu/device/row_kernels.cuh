// Kernels with one block per row: norms, softmax, cross-entropy. kernels.h describes each.
#pragma once

#include "exec/gpu/device/dtype.cuh"
#include "exec/gpu/kernels.h"

namespace bubblescope::exec {

/// 1 / root mean square of the block's row.
template <class Value>
__device__ float inverse_of_row(const Value* row, int columns) {
  float squares = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const float value = to_float(row[column]);
    squares += value * value;
  }
  return 1 / sqrtf(reduce_block(squares, Add()) / static_cast<float>(columns) + kNormEpsilon);
}

template <class Value>
__global__ void norm_kernel(Value* target, const Value* input, const Value* gain, int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  const float inverse = inverse_of_row(input + begin, columns);
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    target[begin + column] =
        from_float<Value>(to_float(input[begin + column]) * inverse * to_float(gain[column]));
}

/// With n = x * r and g = grad * gain: dx = r * (g - n * mean(g * n)). `target` may be `grad` or
/// `added`: a thread reads its columns before it writes them.
template <class Value>
__global__ void norm_grad_kernel(Value* target, const Value* input, const Value* gain,
                                 const Value* grad, const Value* added, float* inverses,
                                 int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  const float inverse = inverse_of_row(input + begin, columns);
  float sum = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    sum += to_float(grad[begin + column]) * to_float(gain[column]) *
           to_float(input[begin + column]) * inverse;
  const float mean = reduce_block(sum, Add()) / static_cast<float>(columns);
  for (int column = threadIdx.x; column < columns; column += blockDim.x) {
    const std::int64_t at = begin + column;
    const float normalized = to_float(input[at]) * inverse;
    const float scaled = to_float(grad[at]) * to_float(gain[column]);
    const float more = added == nullptr ? 0.0F : to_float(added[at]);
    target[at] = from_float<Value>(inverse * (scaled - normalized * mean) + more);
  }
  if (threadIdx.x == 0) inverses[blockIdx.x] = inverse;
}

/// The largest of a row's first `count` entries, and the sum of exp(entry - largest).
struct SoftmaxScale {
  float largest;
  float sum;
};

template <class Value>
__device__ SoftmaxScale softmax_scale(const Value* row, int count) {
  float largest = -INFINITY;
  for (int column = threadIdx.x; column < count; column += blockDim.x)
    largest = Max()(largest, to_float(row[column]));
  largest = reduce_block(largest, Max());
  float sum = 0;
  for (int column = threadIdx.x; column < count; column += blockDim.x)
    sum += expf(to_float(row[column]) - largest);
  return {largest, reduce_block(sum, Add())};
}

template <class Value>
__global__ void causal_softmax_kernel(Value* target, int columns, int period) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const int count = columns - period + static_cast<int>(blockIdx.x % period) + 1;
  const SoftmaxScale scale = softmax_scale(row, count);
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    row[column] = from_float<Value>(
        column < count ? expf(to_float(row[column]) - scale.largest) / scale.sum : 0.0F);
}

template <class Value>
__global__ void softmax_grad_kernel(Value* target, const Value* weights, int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  float part = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    part += to_float(target[begin + column]) * to_float(weights[begin + column]);
  const float sum = reduce_block(part, Add());
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    target[begin + column] = from_float<Value>(to_float(weights[begin + column]) *
                                               (to_float(target[begin + column]) - sum));
}

template <class Value>
__global__ void cross_entropy_kernel(Value* target, const std::int32_t* tokens, float* losses,
                                     int columns) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const SoftmaxScale scale = softmax_scale(row, columns);
  const float wanted = to_float(row[tokens[blockIdx.x]]);
  __syncthreads();  // the row is overwritten below
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    row[column] = from_float<Value>(expf(to_float(row[column]) - scale.largest) / scale.sum);
  if (threadIdx.x == 0) losses[blockIdx.x] = scale.largest + logf(scale.sum) - wanted;
}

template <class Value>
__global__ void cross_entropy_grad_kernel(Value* target, const std::int32_t* tokens, float scale,
                                          int columns) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const int wanted = tokens[blockIdx.x];
  for (int column = threadIdx.x; column < columns; column += blockDim.x)
    row[column] =
        from_float<Value>(scale * (to_float(row[column]) - (column == wanted ? 1.0F : 0.0F)));
}

}  // namespace bubblescope::exec
