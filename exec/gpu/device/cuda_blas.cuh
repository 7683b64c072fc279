// cuBLASLt, opened when the first product is asked for: a run without products needs none.
#pragma once

#include <cublasLt.h>

namespace bubblescope {

/// The library's functions under their own names, which is how errors tell them.
struct CudaBlas {
  decltype(&::cublasLtCreate) cublasLtCreate = nullptr;
  decltype(&::cublasLtDestroy) cublasLtDestroy = nullptr;
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

/// Loads it once. Null with an error in words where it is not found.
const CudaBlas* load_cuda_blas(const char** error);

/// "cublasLtMatmul: cuBLAS status 15" of the text of a call; null for success.
const char* check_blas(cublasStatus_t status, const char* call);

}  // namespace bubblescope

/// Leaves the function with the error of a call that failed.
#define BUBBLESCOPE_BLAS(call)                                                            \
  do {                                                                                    \
    if (const char* const error = ::bubblescope::check_blas((call), #call)) return error; \
  } while (false)
