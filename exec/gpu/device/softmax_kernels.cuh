// Softmax and cross-entropy with one block per row, whose threads handle kCount columns at once, as
// in row_kernels.cuh.
#pragma once

#include "exec/gpu/device/chunk.cuh"
#include "exec/gpu/kernels.h"

namespace bubblescope::exec {

/// The largest of a row's first `count` entries, and the sum of exp(entry - largest).
struct SoftmaxScale {
  float largest;
  float sum;
};

template <int kCount, class Value>
__device__ SoftmaxScale softmax_scale(const Value* row, int count) {
  float largest = -INFINITY;
  for_each_chunk<kCount>(count, [&](int column) {
    const auto entries = load_chunk<kCount>(row + column);
    for (int each = 0; each < kCount; ++each)
      if (column + each < count) largest = Max()(largest, to_float(entries.values[each]));
  });
  largest = reduce_block(largest, Max());
  float sum = 0;
  for_each_chunk<kCount>(count, [&](int column) {
    const auto entries = load_chunk<kCount>(row + column);
    for (int each = 0; each < kCount; ++each)
      if (column + each < count) sum += expf(to_float(entries.values[each]) - largest);
  });
  return {largest, reduce_block(sum, Add())};
}

/// Replaces the first `count` entries of a row by their softmax, and the others by zeros.
template <int kCount, class Value>
__device__ void write_softmax(Value* row, const SoftmaxScale& scale, int count, int columns) {
  for_each_chunk<kCount>(columns, [&](int column) {
    auto entries = load_chunk<kCount>(row + column);
    for (int each = 0; each < kCount; ++each)
      entries.values[each] = from_float<Value>(
          column + each < count ? expf(to_float(entries.values[each]) - scale.largest) / scale.sum
                                : 0.0F);
    store_chunk(row + column, entries);
  });
}

template <int kCount, class Value>
__global__ void causal_softmax_kernel(Value* target, int columns, int period) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const int count = columns - period + static_cast<int>(blockIdx.x % period) + 1;
  write_softmax<kCount>(row, softmax_scale<kCount>(row, count), count, columns);
}

template <int kCount, class Value>
__global__ void softmax_grad_kernel(Value* target, const Value* weights, int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  float part = 0;
  for_each_chunk<kCount>(columns, [&](int column) {
    const auto grads = load_chunk<kCount>(target + begin + column);
    const auto entries = load_chunk<kCount>(weights + begin + column);
    for (int each = 0; each < kCount; ++each)
      part += to_float(grads.values[each]) * to_float(entries.values[each]);
  });
  const float sum = reduce_block(part, Add());
  for_each_chunk<kCount>(columns, [&](int column) {
    auto grads = load_chunk<kCount>(target + begin + column);
    const auto entries = load_chunk<kCount>(weights + begin + column);
    for (int each = 0; each < kCount; ++each)
      grads.values[each] = from_float<Value>(to_float(entries.values[each]) *
                                             (to_float(grads.values[each]) - sum));
    store_chunk(target + begin + column, grads);
  });
}

template <int kCount, class Value>
__global__ void cross_entropy_kernel(Value* target, const std::int32_t* tokens, float* losses,
                                     int columns) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const SoftmaxScale scale = softmax_scale<kCount>(row, columns);
  const float wanted = to_float(row[tokens[blockIdx.x]]);
  __syncthreads();  // the row is overwritten below
  write_softmax<kCount>(row, scale, columns, columns);
  if (threadIdx.x == 0) losses[blockIdx.x] = scale.largest + logf(scale.sum) - wanted;
}

template <int kCount, class Value>
__global__ void cross_entropy_grad_kernel(Value* target, const std::int32_t* tokens, float scale,
                                          int columns) {
  Value* const row = target + static_cast<std::int64_t>(blockIdx.x) * columns;
  const int wanted = tokens[blockIdx.x];
  for_each_chunk<kCount>(columns, [&](int column) {
    auto entries = load_chunk<kCount>(row + column);
    for (int each = 0; each < kCount; ++each)
      entries.values[each] =
          from_float<Value>(scale * (to_float(entries.values[each]) -
                                     (column + each == wanted ? 1.0F : 0.0F)));
    store_chunk(row + column, entries);
  });
}

}  // namespace bubblescope::exec
