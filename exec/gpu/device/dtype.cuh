// The dtypes of kernels, and reductions over the threads of a block.
#pragma once

#include <cstdint>

namespace bubblescope::exec {

/// The upper half of a float32.
struct Bfloat16 {
  std::uint16_t bits;
};

__device__ inline float to_float(float value) { return value; }

__device__ inline float to_float(Bfloat16 value) {
  return __uint_as_float(static_cast<std::uint32_t>(value.bits) << 16);
}

template <class Value>
__device__ inline Value from_float(float value);

template <>
__device__ inline float from_float<float>(float value) {
  return value;
}

/// Rounds to nearest, ties to even; NaN stays NaN.
template <>
__device__ inline Bfloat16 from_float<Bfloat16>(float value) {
#ifdef __CUDA_ARCH__
  Bfloat16 rounded;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded.bits) : "f"(value));
  return rounded;
#else
  const std::uint32_t bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {0x7fff};
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr int kWarp = 32;
inline constexpr int kMaxWarps = 32;

struct Add {
  __device__ float operator()(float left, float right) const { return left + right; }
};
struct Max {
  __device__ float operator()(float left, float right) const { return left > right ? left : right; }
};

/// Reduces over the lanes of a warp; all lanes get the result.
template <class Combine>
__device__ inline float reduce_warp(float value, Combine combine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

/// Reduces over all threads of the block, which has whole warps; all threads get the result.
template <class Combine>
__device__ inline float reduce_block(float value, Combine combine) {
  __shared__ float warp_values[kMaxWarps];
  value = reduce_warp(value, combine);
  if (threadIdx.x % kWarp == 0) warp_values[threadIdx.x / kWarp] = value;
  __syncthreads();
  float combined = warp_values[0];
  for (int warp = 1; warp < static_cast<int>(blockDim.x) / kWarp; ++warp)
    combined = combine(combined, warp_values[warp]);
  __syncthreads();  // the next call reuses the shared memory
  return combined;
}

}  // namespace bubblescope::exec
