// What the program asks of its CUDA module: products, kernels and the passing of time.
#pragma once

#include <cstdint>

extern "C" {

/// How numbers are stored; sums are always made in float32.
enum BubblescopeNumber : std::int32_t { kBubblescopeFloat32, kBubblescopeBfloat16 };

/// One factor of a product, or a batch of them, `step` entries apart.
struct BubblescopeFactor {
  const void* data;
  std::int64_t stride;  ///< from one stored row to the next, in entries
  std::int64_t step;
  std::int32_t transposed;
};

/// What becomes of a product's sums before they are stored.
enum BubblescopeEpilogue : std::int32_t {
  kBubblescopeNoEpilogue,
  kBubblescopeGelu,      ///< target = gelu(sums), aux = sums unless it is null
  kBubblescopeGeluGrad,  ///< target = sums * gelu'(aux)
};

/// target = scale * left * right + source, `batch` times.
struct BubblescopeProduct {
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t inner;
  std::int32_t batch;
  BubblescopeFactor left;
  BubblescopeFactor right;
  const void* source;  ///< stored as the target is, and may be the target; null: nothing is added
  void* target;
  std::int64_t target_stride;
  std::int64_t target_step;
  float scale;
  std::int32_t number;         ///< of the factors
  std::int32_t target_number;  ///< of target, source and aux
  std::int32_t epilogue;       ///< any but none only in a batch of one
  void* aux;                   ///< lies as the target does
};

/// What attention's kernels are told of queries, keys and values, which lie side by side in rows of
/// whole sequences; what they mix has a row per asking position.
struct BubblescopeAttention {
  std::int32_t batch;     ///< sequences
  std::int32_t sequence;  ///< rows of each
  std::int32_t begin;     ///< the first asking position, of
  std::int32_t count;     ///< so many
  std::int32_t heads;
  std::int32_t width;  ///< of a head
  float scale;         ///< of scores
};

/// One launch of a kernel of ours; kernels.h says which fields each kernel reads.
struct BubblescopeLaunch {
  std::int32_t kernel;
  std::int32_t number;
  void* target;
  const void* inputs[4];
  void* extra[3];
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t period;
  float scalars[4];
  BubblescopeAttention attention;
};

/// Lets time pass on a device, or waits for the host.
struct BubblescopeSpin {
  std::int64_t nanos;         ///< from when it starts; it ends sooner where *stop is not 0
  std::int32_t blocks;        ///< thread blocks that are kept busy; 0: one thread that sleeps
  const std::uint32_t* stop;  ///< as the device sees the host's flag
};

}  // extern "C"
