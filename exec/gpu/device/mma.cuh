// Instructions of tensor cores, and the copies that feed them: one warp multiplies 16 x 16 by 16 x
// 8 bfloat16 numbers and adds float32 sums. With g = lane / 4 and t = lane % 4, a lane holds
//
//   left, 16 x 16    [0]: row g, columns 2t and 2t + 1    [1]: row g + 8
//                    [2], [3]: the same rows, columns 2t + 8 and 2t + 9
//   right, 16 x 8    [0]: rows 2t and 2t + 1 of column g  [1]: rows 2t + 8 and 2t + 9
//   sums, 16 x 8     [0], [1]: row g, columns 2t and 2t + 1    [2], [3]: row g + 8
//
// (PTX ISA, "Matrix Fragments for mma.m16n8k16"). The lower half of a register is the first number.
// Without CUDA, tests define these functions.
#pragma once

#include <cstdint>

#include "exec/gpu/device/dtype.cuh"

/// Only nvcc knows the pragmas. Arrays are kept in registers only if every index is known when it
/// compiles; loops that are rarely run should not take room.
#ifdef __CUDACC__
#define BUBBLESCOPE_UNROLL _Pragma("unroll")
#define BUBBLESCOPE_ROLLED _Pragma("unroll 1")
#else
#define BUBBLESCOPE_UNROLL
#define BUBBLESCOPE_ROLLED
#endif

namespace bubblescope::exec {

#ifdef __CUDACC__

__device__ inline std::uint32_t shared_address(const void* shared) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
}

/// sums += left * right.
__device__ inline void multiply_fragments(float (&sums)[4], const std::uint32_t (&left)[4],
                                          const std::uint32_t (&right)[2]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));
}

/// Loads four matrices of 8 x 8 numbers from shared memory. Lane l points to row l % 8 of matrix
/// l / 8; it gets columns 2t and 2t + 1 of row g of each.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const Bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// The same, transposed: a lane gets rows 2t and 2t + 1 of column g of each.
__device__ inline void load_transposed(std::uint32_t (&to)[4], const Bfloat16* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(row))
               : "memory");
}

/// Begins to copy 16 bytes to shared memory; zeros unless `is_there`, when `from` is not
/// read and may point anywhere. Both must be aligned.
__device__ inline void begin_copy(Bfloat16* shared, const Bfloat16* from, bool is_there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(from)), "r"(is_there ? 16 : 0)
               : "memory");
}

/// Begins the copy of one number, likewise.
__device__ inline void begin_copy(float* shared, const float* from, bool is_there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)),
               "l"(__cvta_generic_to_global(from)), "r"(is_there ? 4 : 0)
               : "memory");
}

/// Waits until all copies that this thread has begun have ended.
__device__ inline void await_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/// Returns 2 to the power of x; 0 for minus infinity.
__device__ inline float power_of_two(float x) {
  float power = 0;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

/// Rounds two numbers to a register, `low` to its lower half.
__device__ inline std::uint32_t pack_halves(float low, float high) {
  std::uint32_t packed = 0;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

#else

void multiply_fragments(float (&sums)[4], const std::uint32_t (&left)[4],
                        const std::uint32_t (&right)[2]);
void load_matrices(std::uint32_t (&to)[4], const Bfloat16* row);
void load_transposed(std::uint32_t (&to)[4], const Bfloat16* row);
void begin_copy(Bfloat16* shared, const Bfloat16* from, bool is_there);
void begin_copy(float* shared, const float* from, bool is_there);
void await_copies();
float power_of_two(float x);
std::uint32_t pack_halves(float low, float high);

#endif

}  // namespace bubblescope::exec
