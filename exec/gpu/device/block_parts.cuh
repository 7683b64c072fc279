// The shared memory and the index of a block of attention on tensor cores. Tests run without CUDA,
// where both are variables.
#pragma once

namespace bubblescope::exec {

#ifdef __CUDACC__

/// The shared memory of the block, whose size the launch gives.
template <class Parts>
__device__ Parts& shared_parts() {
  extern __shared__ __align__(16) unsigned char bytes[];
  return *reinterpret_cast<Parts*>(bytes);
}

/// The index of the block, read anew by every call: what is computed from it then need not stay in
/// registers in between.
__device__ inline int read_block_index() {
  int index = 0;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

#else

template <class Parts>
Parts& shared_parts() {
  alignas(16) static unsigned char bytes[sizeof(Parts)];
  return *reinterpret_cast<Parts*>(bytes);
}

inline int read_block_index() { return static_cast<int>(blockIdx.x); }

#endif

}  // namespace bubblescope::exec
