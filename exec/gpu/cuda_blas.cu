// Opening cuBLASLt.
#include <dlfcn.h>

#include "exec/gpu/cuda_blas.cuh"
#include "exec/gpu/cuda_calls.cuh"

namespace bubblescope {

namespace {

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The library stays open for good.
bool open(CudaBlas& blas) {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && find(library, "cublasLtCreate", blas.create) &&
         find(library, "cublasLtDestroy", blas.destroy) &&
         find(library, "cublasLtMatmul", blas.multiply) &&
         find(library, "cublasLtMatmulAlgoGetHeuristic", blas.choose) &&
         find(library, "cublasLtMatmulDescCreate", blas.create_product) &&
         find(library, "cublasLtMatmulDescDestroy", blas.destroy_product) &&
         find(library, "cublasLtMatmulDescSetAttribute", blas.set_product) &&
         find(library, "cublasLtMatrixLayoutCreate", blas.create_layout) &&
         find(library, "cublasLtMatrixLayoutDestroy", blas.destroy_layout) &&
         find(library, "cublasLtMatrixLayoutSetAttribute", blas.set_layout) &&
         find(library, "cublasLtMatmulPreferenceCreate", blas.create_preference) &&
         find(library, "cublasLtMatmulPreferenceDestroy", blas.destroy_preference) &&
         find(library, "cublasLtMatmulPreferenceSetAttribute", blas.set_preference);
}

}  // namespace

const CudaBlas* load_cuda_blas(const char** error) {
  static CudaBlas blas;
  static const bool is_open = open(blas);
  if (is_open) return &blas;
  *error = tell("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR) +
                " is not found; put its folder into LD_LIBRARY_PATH, or use --work spin");
  return nullptr;
}

const char* check_blas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return nullptr;
  return tell(std::string(call) + ": cuBLAS status " + std::to_string(static_cast<int>(status)));
}

}  // namespace bubblescope
