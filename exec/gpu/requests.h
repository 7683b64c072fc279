// Requests to the CUDA module: GEMMs, attention and waiting. Those of other kernels are in
// kernels.h.
#pragma once

#include <cstdint>

extern "C" {

/// The dtype of stored values; sums are always computed in float32.
enum BubblescopeDtype : std::int32_t { kBubblescopeFloat32, kBubblescopeBfloat16 };

/// An operand of a GEMM, or a batch of them, `step` entries apart.
struct BubblescopeOperand {
  const void* data;
  std::int64_t stride;  ///< between stored rows, in entries
  std::int64_t step;
  std::int32_t transposed;
};

/// The operation that is fused to the end of a GEMM.
enum BubblescopeEpilogue : std::int32_t {
  kBubblescopeNoEpilogue,
  kBubblescopeGelu,      ///< target = gelu(sums), aux = sums unless it is null
  kBubblescopeGeluGrad,  ///< target = sums * gelu'(aux)
};

/// target = scale * left * right + source, `batch` times.
struct BubblescopeGemm {
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t k;
  std::int32_t batch;
  BubblescopeOperand left;
  BubblescopeOperand right;
  const void* source;  ///< in the layout of the target, may be the target; null: none
  void* target;
  std::int64_t target_stride;
  std::int64_t target_step;
  float scale;
  std::int32_t dtype;         ///< dtype of the operands
  std::int32_t target_dtype;  ///< dtype of target, source and aux
  std::int32_t epilogue;      ///< must be none unless `batch` is 1
  void* aux;                  ///< in the layout of the target
};

/// Parameters of the attention kernels. Queries, keys and values lie side by side in rows of whole
/// sequences; the output has one row per query.
struct BubblescopeAttention {
  std::int32_t batch;     ///< sequences
  std::int32_t sequence;  ///< rows of each
  std::int32_t begin;     ///< position of the first query
  std::int32_t count;     ///< number of queries per sequence
  std::int32_t heads;
  std::int32_t width;  ///< of a head
  float scale;         ///< of scores
};

/// A kernel that passes time on a device, or waits for the host.
struct BubblescopeSpin {
  std::int64_t nanos;            ///< after its start; it ends sooner once *stop is not 0
  std::int32_t blocks;           ///< busy thread blocks; 0: one thread that sleeps
  const std::uint32_t* stop;     ///< device address of a host flag
  std::int32_t awaits_stop = 0;  ///< 1: it waits for `stop`, and `nanos` is only a bound
};

}  // extern "C"
