// cuBLASLt, loaded at the first GEMM: a run without GEMMs does not need it.
#pragma once

#include <cublasLt.h>

namespace bubblescope::exec {

/// The functions have the library's names, which error messages show.
struct CudaBlas {
  decltype(&::cublasLtCreate) cublasLtCreate = nullptr;
  decltype(&::cublasLtDestroy) cublasLtDestroy = nullptr;
  decltype(&::cublasLtGetVersion) cublasLtGetVersion = nullptr;
  decltype(&::cublasLtMatmul) cublasLtMatmul = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) cublasLtMatmulAlgoGetHeuristic = nullptr;
  decltype(&::cublasLtMatmulDescCreate) cublasLtMatmulDescCreate = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) cublasLtMatmulDescDestroy = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) cublasLtMatmulDescSetAttribute = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) cublasLtMatrixLayoutCreate = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) cublasLtMatrixLayoutDestroy = nullptr;
  decltype(&::cublasLtMatrixLayoutSetAttribute) cublasLtMatrixLayoutSetAttribute = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) cublasLtMatmulPreferenceCreate = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) cublasLtMatmulPreferenceDestroy = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) cublasLtMatmulPreferenceSetAttribute = nullptr;
};

/// Loads the library once. Returns null and an error message if it is not found.
const CudaBlas* load_cuda_blas(const char** error);

/// Returns null for success, or "cublasLtMatmul: cuBLAS status 15" for the text of a call.
const char* check_blas(cublasStatus_t status, const char* call);

}  // namespace bubblescope::exec

/// Returns from the function with the error if the call fails.
#define BUBBLESCOPE_BLAS(call)                                                            \
  do {                                                                                    \
    if (const char* const error = ::bubblescope::exec::check_blas((call), #call)) return error; \
  } while (false)
