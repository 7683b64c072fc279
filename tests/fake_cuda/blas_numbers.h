// Matrices of cuBLASLt as the host reads and writes them, and the product itself.
#pragma once

#include "tests/fake_cuda/blas.h"

namespace bubblescope::fake_cuda {

/// A matrix of a batch, in memory.
struct BlasMatrix {
  BlasLayout layout;
  void* data = nullptr;

  float get(std::int32_t of_batch, std::uint64_t row, std::uint64_t column) const;
  void set(std::int32_t of_batch, std::uint64_t row, std::uint64_t column, float value) const;

  /// From the first to behind the last entry that is read or written.
  std::size_t bytes() const;
};

/// target = epilogue(scale * first * second + keep * source)
struct BlasOrder {
  BlasProduct product;
  BlasMatrix first;
  BlasMatrix second;
  BlasMatrix source;
  BlasMatrix target;
  BlasMatrix aside;  ///< of the epilogue; its data is null where it has none
  float scale = 1;
  float keep = 0;  ///< with 0 the source is not read
};

void multiply(const BlasOrder& order);

}  // namespace bubblescope::fake_cuda
