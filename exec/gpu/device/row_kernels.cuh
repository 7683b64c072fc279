// Kernels with one block per row: norms, softmax, cross-entropy. kernels.h describes each. A thread
// handles kCount adjacent columns at once: 1, or as many as are 16 bytes where all rows are aligned
// and have a multiple of them.
#pragma once

#include "exec/gpu/device/chunk.cuh"
#include "exec/gpu/kernels.h"

namespace bubblescope::exec {

/// 1 / root mean square of the block's row.
template <int kCount, class Value>
__device__ float inverse_of_row(const Value* row, int columns) {
  float squares = 0;
  for_each_chunk<kCount>(columns, [&](int column) {
    const auto entries = load_chunk<kCount>(row + column);
    for (int each = 0; each < kCount; ++each) {
      const float value = to_float(entries.values[each]);
      squares += value * value;
    }
  });
  return 1 / sqrtf(reduce_block(squares, Add()) / static_cast<float>(columns) + kNormEpsilon);
}

template <int kCount, class Value>
__global__ void norm_kernel(Value* target, const Value* input, const Value* gain, int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  const float inverse = inverse_of_row<kCount>(input + begin, columns);
  for_each_chunk<kCount>(columns, [&](int column) {
    auto entries = load_chunk<kCount>(input + begin + column);
    const auto gains = load_chunk<kCount>(gain + column);
    for (int each = 0; each < kCount; ++each)
      entries.values[each] = from_float<Value>(to_float(entries.values[each]) * inverse *
                                               to_float(gains.values[each]));
    store_chunk(target + begin + column, entries);
  });
}

/// With n = x * r and g = grad * gain: dx = r * (g - n * mean(g * n)). `target` may be `grad` or
/// `added`: a thread reads its columns before it writes them.
template <int kCount, class Value>
__global__ void norm_grad_kernel(Value* target, const Value* input, const Value* gain,
                                 const Value* grad, const Value* added, float* inverses,
                                 int columns) {
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * columns;
  const float inverse = inverse_of_row<kCount>(input + begin, columns);
  float sum = 0;
  for_each_chunk<kCount>(columns, [&](int column) {
    const auto grads = load_chunk<kCount>(grad + begin + column);
    const auto gains = load_chunk<kCount>(gain + column);
    const auto entries = load_chunk<kCount>(input + begin + column);
    for (int each = 0; each < kCount; ++each)
      sum += to_float(grads.values[each]) * to_float(gains.values[each]) *
             to_float(entries.values[each]) * inverse;
  });
  const float mean = reduce_block(sum, Add()) / static_cast<float>(columns);
  for_each_chunk<kCount>(columns, [&](int column) {
    const auto entries = load_chunk<kCount>(input + begin + column);
    const auto gains = load_chunk<kCount>(gain + column);
    auto grads = load_chunk<kCount>(grad + begin + column);
    Chunk<kCount, Value> more{};
    if (added != nullptr) more = load_chunk<kCount>(added + begin + column);
    for (int each = 0; each < kCount; ++each) {
      const float normalized = to_float(entries.values[each]) * inverse;
      const float scaled = to_float(grads.values[each]) * to_float(gains.values[each]);
      grads.values[each] = from_float<Value>(inverse * (scaled - normalized * mean) +
                                             to_float(more.values[each]));
    }
    store_chunk(target + begin + column, grads);
  });
  if (threadIdx.x == 0) inverses[blockIdx.x] = inverse;
}

}  // namespace bubblescope::exec
