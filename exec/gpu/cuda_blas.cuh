// cuBLASLt, opened when the first product is asked for: a run without products needs none.
#pragma once

#include <cublasLt.h>

namespace bubblescope {

struct CudaBlas {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtMatmul) multiply = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) choose = nullptr;
  decltype(&cublasLtMatmulDescCreate) create_product = nullptr;
  decltype(&cublasLtMatmulDescDestroy) destroy_product = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) set_product = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
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
