// Creates cuBLASLt's descriptors and sets their attributes.
#include <cstring>

#include "tests/fake_cuda/blas.h"
#include "tests/fake_cuda/devices.h"

namespace bubblescope::tests::fake_cuda {

namespace {

/// The size must be that of the attribute.
template <class Value>
cublasStatus_t set(Value& to, const void* from, std::size_t bytes) {
  if (from == nullptr || bytes != sizeof to) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, from, sizeof to);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_alignment(std::uint32_t& to, const void* from, std::size_t bytes) {
  const cublasStatus_t status = set(to, from, bytes);
  if (status == CUBLAS_STATUS_SUCCESS && (to == 0 || (to & (to - 1)) != 0))
    return CUBLAS_STATUS_INVALID_VALUE;
  return status;
}

cublasStatus_t unknown(const char* call, int attribute) {
  refuse(std::string(call) + ": an attribute that tests/fake_cuda does not know, " +
         std::to_string(attribute));
}

template <class Handle, class Value>
cublasStatus_t destroy(const char* name, Registry<Value>& registry, Handle handle) {
  return blas_call(name, [&] {
    registry.remove(handle, name);
    return CUBLAS_STATUS_SUCCESS;
  });
}

}  // namespace

Registry<BlasLayout>& blas_layouts() {
  static auto& instance = *new Registry<BlasLayout>("matrix layouts");
  return instance;
}

Registry<BlasGemm>& blas_gemms() {
  static auto& instance = *new Registry<BlasGemm>("product descriptors");
  return instance;
}

Registry<BlasPreference>& blas_preferences() {
  static auto& instance = *new Registry<BlasPreference>("product preferences");
  return instance;
}

Registry<BlasHandle>& blas_handles() {
  static auto& instance = *new Registry<BlasHandle>("handles of cuBLASLt");
  return instance;
}

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return blas_call("cublasLtCreate", [&] {
    *handle = reinterpret_cast<cublasLtHandle_t>(blas_handles().add({current_device()}));
    return CUBLAS_STATUS_SUCCESS;
  });
}

std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy("cublasLtDestroy", blas_handles(), handle);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return blas_call("cublasLtMatrixLayoutCreate", [&] {
    if (type != CUDA_R_32F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (rows == 0 || columns == 0 || leading < static_cast<std::int64_t>(rows))
      return CUBLAS_STATUS_INVALID_VALUE;
    *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
        blas_layouts().add({type, rows, columns, leading}));
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy("cublasLtMatrixLayoutDestroy", blas_layouts(), layout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  constexpr const char* kCall = "cublasLtMatrixLayoutSetAttribute";
  return blas_call(kCall, [&] {
    BlasLayout& of = blas_layouts().find(layout, kCall);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return set(of.batch, value, bytes);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return set(of.step, value, bytes);
    return unknown(kCall, attribute);
  });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* gemm, cublasComputeType_t computes,
                                        cudaDataType_t scale) {
  return blas_call("cublasLtMatmulDescCreate", [&] {
    if (computes != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
    *gemm = reinterpret_cast<cublasLtMatmulDesc_t>(blas_gemms().add({}));
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t gemm) {
  return destroy("cublasLtMatmulDescDestroy", blas_gemms(), gemm);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t gemm,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  constexpr const char* kCall = "cublasLtMatmulDescSetAttribute";
  return blas_call(kCall, [&] {
    BlasGemm& of = blas_gemms().find(gemm, kCall);
    switch (static_cast<int>(attribute)) {
      case CUBLASLT_MATMUL_DESC_TRANSA: return set(of.transpose_first, value, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSB: return set(of.transpose_second, value, bytes);
      case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return set(of.multiprocessors, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(of.epilogue, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return set(of.aux, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return set(of.aux_leading, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return set(of.aux_step, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return set(of.aux_type, value, bytes);
      default: return unknown(kCall, attribute);
    }
  });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return blas_call("cublasLtMatmulPreferenceCreate", [&] {
    *preference = reinterpret_cast<cublasLtMatmulPreference_t>(blas_preferences().add({}));
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy("cublasLtMatmulPreferenceDestroy", blas_preferences(), preference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  constexpr const char* kCall = "cublasLtMatmulPreferenceSetAttribute";
  return blas_call(kCall, [&] {
    BlasPreference& of = blas_preferences().find(preference, kCall);
    switch (static_cast<int>(attribute)) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return set(of.workspace_bytes, value, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return set_alignment(of.alignments[0], value, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return set_alignment(of.alignments[1], value, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return set_alignment(of.alignments[2], value, bytes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return set_alignment(of.alignments[3], value, bytes);
      default: return unknown(kCall, attribute);
    }
  });
}
