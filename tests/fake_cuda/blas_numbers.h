// cuBLASLt's matrices on the host, and the GEMM itself.
#pragma once

#include "tests/fake_cuda/blas.h"

namespace bubblescope::tests::fake_cuda {

/// A matrix or a batch of matrices in memory.
struct BlasMatrix {
  BlasLayout layout;
  void* data = nullptr;

  float get(std::int32_t of_batch, std::uint64_t row, std::uint64_t column) const;
  void set(std::int32_t of_batch, std::uint64_t row, std::uint64_t column, float value) const;

  /// From the first entry that is read or written to the end of the last.
  std::size_t bytes() const;
};

/// target = epilogue(scale * first * second + keep * source).
struct BlasGemmOperands {
  BlasGemm gemm;
  BlasMatrix first;
  BlasMatrix second;
  BlasMatrix source;
  BlasMatrix target;
  BlasMatrix aux;  ///< of the epilogue; its data is null without one
  float scale = 1;
  float beta = 0;  ///< with 0 the source is not read
};

void multiply(const BlasGemmOperands& gemm_operands);

}  // namespace bubblescope::tests::fake_cuda
