// The causal softmax of rows that a warp holds in its registers.
#pragma once

#include "exec/gpu/device/chunk.cuh"

namespace bubblescope::exec {

/// The longest row that a warp can hold in `kChunks` chunks per lane.
template <int kCount, int kChunks>
inline constexpr int kShortRow = kWarp * kCount * kChunks;

/// As causal_softmax_kernel, for rows of up to kShortRow entries: each is read once, and no warp
/// waits for another.
template <int kCount, int kChunks, class Value>
__global__ void short_causal_softmax_kernel(Value* target, int rows, int columns, int period) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warps = static_cast<int>(blockDim.x) / kWarp;
  const int at = static_cast<int>(blockIdx.x) * warps + static_cast<int>(threadIdx.x) / kWarp;
  if (at >= rows) return;
  Value* const row = target + static_cast<std::int64_t>(at) * columns;
  const int count = columns - period + at % period + 1;
  const auto column_of = [lane](int chunk) { return (chunk * kWarp + lane) * kCount; };
  float scores[kChunks][kCount];  // times log2(e), and -infinity after the diagonal
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    Chunk<kCount, Value> loaded{};
    if (column_of(chunk) < count) loaded = load_chunk<kCount>(row + column_of(chunk));
    for (int each = 0; each < kCount; ++each)
      scores[chunk][each] = column_of(chunk) + each < count
                                ? to_float(loaded.values[each]) * kLog2E
                                : -INFINITY;
  }
  float largest = -INFINITY;
  for (int chunk = 0; chunk < kChunks; ++chunk)
    for (int each = 0; each < kCount; ++each) largest = Max()(largest, scores[chunk][each]);
  largest = reduce_warp(largest, Max());
  float sum = 0;
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    if (column_of(chunk) >= count) continue;
    for (int each = 0; each < kCount; ++each) {
      scores[chunk][each] = exp2f(scores[chunk][each] - largest);
      sum += scores[chunk][each];
    }
  }
  const float inverse = 1 / reduce_warp(sum, Add());
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    if (column_of(chunk) >= columns) continue;
    Chunk<kCount, Value> stored{};
    if (column_of(chunk) < count)
      for (int each = 0; each < kCount; ++each)
        stored.values[each] = from_float<Value>(scores[chunk][each] * inverse);
    store_chunk(row + column_of(chunk), stored);
  }
}

}  // namespace bubblescope::exec
