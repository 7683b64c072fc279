// Loads cuBLASLt.
#include "exec/gpu/device/cuda_blas.cuh"
#include "exec/gpu/device/cuda_calls.cuh"
#include "exec/runtime/library_call.h"

namespace bubblescope::exec {

namespace {

/// The library is never unloaded.
bool open(CudaBlas& blas) {
  void* const library = open_library({"libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR)});
  return library != nullptr && find_call(library, "cublasLtCreate", blas.cublasLtCreate) &&
         find_call(library, "cublasLtDestroy", blas.cublasLtDestroy) &&
         find_call(library, "cublasLtGetVersion", blas.cublasLtGetVersion) &&
         find_call(library, "cublasLtMatmul", blas.cublasLtMatmul) &&
         find_call(library, "cublasLtMatmulAlgoGetHeuristic",
                   blas.cublasLtMatmulAlgoGetHeuristic) &&
         find_call(library, "cublasLtMatmulDescCreate", blas.cublasLtMatmulDescCreate) &&
         find_call(library, "cublasLtMatmulDescDestroy", blas.cublasLtMatmulDescDestroy) &&
         find_call(library, "cublasLtMatmulDescSetAttribute",
                   blas.cublasLtMatmulDescSetAttribute) &&
         find_call(library, "cublasLtMatrixLayoutCreate", blas.cublasLtMatrixLayoutCreate) &&
         find_call(library, "cublasLtMatrixLayoutDestroy", blas.cublasLtMatrixLayoutDestroy) &&
         find_call(library, "cublasLtMatrixLayoutSetAttribute",
                   blas.cublasLtMatrixLayoutSetAttribute) &&
         find_call(library, "cublasLtMatmulPreferenceCreate",
                   blas.cublasLtMatmulPreferenceCreate) &&
         find_call(library, "cublasLtMatmulPreferenceDestroy",
                   blas.cublasLtMatmulPreferenceDestroy) &&
         find_call(library, "cublasLtMatmulPreferenceSetAttribute",
                   blas.cublasLtMatmulPreferenceSetAttribute);
}

/// Returns "cublasLtMatmul" for "with.blas->cublasLtMatmul(with.handle, ...)".
std::string function_of(const std::string& call) {
  const std::string before = call.substr(0, call.find('('));
  return before.substr(before.find_last_of(".>") + 1);
}

}  // namespace

const CudaBlas* load_cuda_blas(const char** error) {
  static CudaBlas blas;
  static const bool is_open = open(blas);
  if (is_open) return &blas;
  *error = store_error("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR) +
                       " was not found; put its folder into LD_LIBRARY_PATH, or use `work` spin");
  return nullptr;
}

const char* check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return nullptr;
  if (status == CUBLAS_STATUS_ALLOC_FAILED)
    return store_error(function_of(call) + ": cuBLAS is out of memory");
  return store_error(function_of(call) + ": cuBLAS status " + std::to_string(static_cast<int>(status)));
}

}  // namespace bubblescope::exec
