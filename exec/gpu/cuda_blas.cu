// Opening cuBLASLt.
#include <dlfcn.h>

#include "exec/gpu/cuda_blas.cuh"
#include "exec/gpu/cuda_calls.cuh"

namespace bubblescope {

namespace {

struct Name {
  const char* member;  ///< of CudaBlas
  const char* function;
};

constexpr Name kNames[] = {
    {"create", "cublasLtCreate"},
    {"destroy", "cublasLtDestroy"},
    {"multiply", "cublasLtMatmul"},
    {"choose", "cublasLtMatmulAlgoGetHeuristic"},
    {"create_product", "cublasLtMatmulDescCreate"},
    {"destroy_product", "cublasLtMatmulDescDestroy"},
    {"set_product", "cublasLtMatmulDescSetAttribute"},
    {"create_layout", "cublasLtMatrixLayoutCreate"},
    {"destroy_layout", "cublasLtMatrixLayoutDestroy"},
    {"set_layout", "cublasLtMatrixLayoutSetAttribute"},
    {"create_preference", "cublasLtMatmulPreferenceCreate"},
    {"destroy_preference", "cublasLtMatmulPreferenceDestroy"},
    {"set_preference", "cublasLtMatmulPreferenceSetAttribute"},
};

std::string name_of(const std::string& member) {
  for (const Name& name : kNames)
    if (member == name.member) return name.function;
  return member;
}

template <class Function>
bool find(void* library, const char* member, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name_of(member).c_str()));
  return function != nullptr;
}

/// The library stays open for good.
bool open(CudaBlas& blas) {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  return library != nullptr && find(library, "create", blas.create) &&
         find(library, "destroy", blas.destroy) && find(library, "multiply", blas.multiply) &&
         find(library, "choose", blas.choose) &&
         find(library, "create_product", blas.create_product) &&
         find(library, "destroy_product", blas.destroy_product) &&
         find(library, "set_product", blas.set_product) &&
         find(library, "create_layout", blas.create_layout) &&
         find(library, "destroy_layout", blas.destroy_layout) &&
         find(library, "set_layout", blas.set_layout) &&
         find(library, "create_preference", blas.create_preference) &&
         find(library, "destroy_preference", blas.destroy_preference) &&
         find(library, "set_preference", blas.set_preference);
}

/// "choose" of "multiplier.blas->choose(multiplier.handle, ...)".
std::string member_of(const std::string& call) {
  const std::string before = call.substr(0, call.find('('));
  return before.substr(before.find_last_of(".>") + 1);
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
  return tell(name_of(member_of(call)) + ": cuBLAS status " +
              std::to_string(static_cast<int>(status)));
}

}  // namespace bubblescope
