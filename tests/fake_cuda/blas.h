// A cuBLASLt that computes on the host: its descriptors.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <tuple>

#include "tests/fake_cuda/registry.h"

namespace bubblescope::tests::fake_cuda {

/// The layout of a column-major matrix.
struct BlasLayout {
  cudaDataType type = CUDA_R_32F;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;  ///< between columns, in entries
  std::int32_t batch = 1;
  std::int64_t step = 0;  ///< between the matrices of a batch

  auto operator<=>(const BlasLayout&) const = default;
};

struct BlasGemm {
  std::int32_t transpose_first = CUBLAS_OP_N;
  std::int32_t transpose_second = CUBLAS_OP_N;
  std::int32_t multiprocessors = 0;  ///< 0: all
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int64_t aux_leading = 0;
  std::int64_t aux_step = 0;
  std::int32_t aux_type = -1;  ///< -1: that of the target
  void* aux = nullptr;         ///< of the epilogue

  /// The properties for which an algorithm is chosen.
  auto kind() const {
    return std::tuple(transpose_first, transpose_second, multiprocessors, epilogue, aux_leading,
                      aux_step, aux_type);
  }
};

struct BlasPreference {
  std::uint64_t workspace_bytes = 0;
  std::uint32_t alignments[4] = {256, 256, 256, 256};  ///< of A, B, C and D
};

/// The device that was current at its creation.
struct BlasHandle {
  std::int32_t device = 0;
};

Registry<BlasLayout>& blas_layouts();
Registry<BlasGemm>& blas_gemms();
Registry<BlasPreference>& blas_preferences();
Registry<BlasHandle>& blas_handles();

/// Runs `body` as a runtime call that returns cuBLAS's errors.
template <class Body>
cublasStatus_t blas_call(const char* name, const Body& body) {
  cublasStatus_t answer = CUBLAS_STATUS_INTERNAL_ERROR;
  const cudaError_t status = call(name, [&] {
    answer = body();
    return cudaSuccess;
  });
  return status == cudaSuccess ? answer : CUBLAS_STATUS_INTERNAL_ERROR;
}

}  // namespace bubblescope::tests::fake_cuda
