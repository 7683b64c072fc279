// Runs CUDA kernels on the host, thread by thread, so that their very source is tested without a
// GPU: a block's threads are fibers, which take turns at __syncthreads and shuffles. Include this
// before the kernels.
//
// Fibers run from the first to the last thread or, to find what only works in one order, from the
// last to the first; shared memory begins as what the block before left in it, as on a device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

namespace bubblescope::tests {

struct EmulatedIndex {
  unsigned int x = 0;
};

enum class FiberOrder : std::uint8_t { kUp, kDown };

/// Runs `kernel` for every thread of every block. Throws std::logic_error if some threads of a
/// block exit, or wait elsewhere, while others wait for them.
void emulate(unsigned int blocks, unsigned int threads, FiberOrder order,
             const std::function<void()>& kernel);

/// The thread that is running.
EmulatedIndex& emulated_thread();
EmulatedIndex& emulated_block();
EmulatedIndex& emulated_block_size();
EmulatedIndex& emulated_grid_size();
void emulated_barrier();
/// The value of the thread of the same warp whose index differs in these bits.
float emulated_shuffle(float value, int bits);
/// Shows something to all threads of the warp, which must all call this; then what a lane shows;
/// and the end, after which nothing is shown.
void emulated_show(const void* shown);
const void* emulated_shown_by(unsigned int lane);
void emulated_end_show();

}  // namespace bubblescope::tests

// The CUDA C++ keywords that the kernels use.
#define __global__
#define __device__
#define __shared__ static
#define threadIdx ::bubblescope::tests::emulated_thread()
#define blockIdx ::bubblescope::tests::emulated_block()
#define blockDim ::bubblescope::tests::emulated_block_size()
#define gridDim ::bubblescope::tests::emulated_grid_size()
#define __launch_bounds__(...)
#define __syncthreads ::bubblescope::tests::emulated_barrier

inline float __shfl_xor_sync(std::uint32_t, float value, int bits) {
  return ::bubblescope::tests::emulated_shuffle(value, bits);
}
inline float __uint_as_float(std::uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline std::uint32_t __float_as_uint(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
