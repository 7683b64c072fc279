// Which entries of an array a thread works on.
#pragma once

#include <cstdint>

namespace bubblescope {

/// Every thread's first entry, and how far it is to its next.
__device__ inline std::int64_t first_entry() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t entry_step() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace bubblescope
