// Adjacent numbers that a thread reads and writes at once, up to 16 bytes.
#pragma once

#include <cstdint>

#include "exec/gpu/device/dtype.cuh"

namespace bubblescope::exec {

template <int kCount, class Value>
struct alignas(kCount * sizeof(Value)) Chunk {
  Value values[kCount];
};

/// The most numbers that a thread handles at once.
template <class Value>
inline constexpr int kWideChunk = 16 / static_cast<int>(sizeof(Value));

template <int kCount, class Value>
__device__ Chunk<kCount, Value> load_chunk(const Value* from) {
  return *reinterpret_cast<const Chunk<kCount, Value>*>(from);
}

template <int kCount, class Value>
__device__ void store_chunk(Value* to, const Chunk<kCount, Value>& chunk) {
  *reinterpret_cast<Chunk<kCount, Value>*>(to) = chunk;
}

/// Calls use(column) for the first column of every chunk that this thread has of a row.
template <int kCount, class Use>
__device__ void for_each_chunk(int columns, const Use& use) {
  for (int column = static_cast<int>(threadIdx.x) * kCount; column < columns;
       column += static_cast<int>(blockDim.x) * kCount)
    use(column);
}

}  // namespace bubblescope::exec
