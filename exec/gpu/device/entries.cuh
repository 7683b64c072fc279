// The entries of an array that a thread works on.
#pragma once

#include <cstdint>

namespace bubblescope::exec {

/// The two functions below return the thread's first entry, and the distance to its next.
__device__ inline std::int64_t first_entry() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t entry_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace bubblescope::exec
