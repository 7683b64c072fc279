// Chooses algorithms and puts GEMMs on streams.
#include "tests/fake_cuda/blas.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "tests/fake_cuda/blas_numbers.h"
#include "tests/fake_cuda/devices.h"
#include "tests/fake_cuda/memory.h"
#include "tests/fake_cuda/streams.h"

namespace bubblescope::tests::fake_cuda {

namespace {

constexpr std::size_t kWorkspaceAlignment = 256;
/// Every algorithm needs this much workspace here, and overwrites it.
constexpr std::size_t kWorkspaceBytes = std::size_t{1} << 20;

struct Layouts {
  BlasLayout first, second, source, target;
  auto operator<=>(const Layouts&) const = default;
};

/// The content of a cublasLtMatmulAlgo_t.
struct Algorithm {
  decltype(BlasGemm{}.kind()) kind;
  Layouts layouts;
  BlasPreference preference;
  std::size_t aux_alignment = 1;
  bool fills_device = false;  ///< its blocks wait for each other, and do not all fit a partition
};

constexpr int kAlgorithmsOfGemm = 3;

/// How many algorithms of a GEMM fill the device: as on an H100, where the inner dimension is long.
/// Some GEMMs have no others, unless the library gets the number of multiprocessors.
int count_filling(const BlasGemm& gemm, const Layouts& of) {
  if (gemm.multiprocessors != 0) return 0;
  const std::uint64_t inner =
      gemm.transpose_first != CUBLAS_OP_N ? of.first.rows : of.first.columns;
  return (inner > of.target.rows ? 1 : 0) + (inner > of.target.columns ? kAlgorithmsOfGemm - 1 : 0);
}

std::map<std::uint64_t, Algorithm>& algorithms() {
  static auto& instance = *new std::map<std::uint64_t, Algorithm>;
  return instance;
}

std::size_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return address == 0 ? 256 : address & (~address + 1);
}

bool has_aux(const BlasGemm& gemm) {
  return gemm.epilogue == CUBLASLT_EPILOGUE_GELU_AUX || gemm.epilogue == CUBLASLT_EPILOGUE_DGELU;
}

bool is_known(const BlasGemm& gemm) {
  return gemm.epilogue == CUBLASLT_EPILOGUE_DEFAULT || gemm.epilogue == CUBLASLT_EPILOGUE_GELU ||
         has_aux(gemm);
}

/// The auxiliary matrix of an epilogue has the layout of the target, except for its leading
/// dimension.
BlasLayout aux_layout(const BlasGemm& gemm, const BlasLayout& target) {
  BlasLayout layout = target;
  layout.leading = gemm.aux_leading;
  layout.step = gemm.aux_step;
  if (gemm.aux_type != -1) layout.type = static_cast<cudaDataType>(gemm.aux_type);
  return layout;
}

cublasStatus_t check_aux(const BlasGemm& gemm, const BlasLayout& target) {
  if (!has_aux(gemm)) return CUBLAS_STATUS_SUCCESS;
  const BlasLayout layout = aux_layout(gemm, target);
  if (gemm.aux == nullptr || layout.leading % 8 != 0 || layout.step % 8 != 0 ||
      layout.leading < static_cast<std::int64_t>(target.rows) || layout.type != target.type)
    return CUBLAS_STATUS_INVALID_VALUE;
  return CUBLAS_STATUS_SUCCESS;
}

/// Checks that the sizes and types of a GEMM fit together.
cublasStatus_t check(const BlasGemm& gemm, const Layouts& of) {
  const bool transpose_first = gemm.transpose_first != CUBLAS_OP_N;
  const bool transpose_second = gemm.transpose_second != CUBLAS_OP_N;
  const std::uint64_t rows = transpose_first ? of.first.columns : of.first.rows;
  const std::uint64_t inner = transpose_first ? of.first.rows : of.first.columns;
  const std::uint64_t other_inner = transpose_second ? of.second.columns : of.second.rows;
  const std::uint64_t columns = transpose_second ? of.second.rows : of.second.columns;
  if (inner != other_inner || rows != of.target.rows || columns != of.target.columns ||
      rows != of.source.rows || columns != of.source.columns)
    return CUBLAS_STATUS_INVALID_VALUE;
  for (const BlasLayout& other : {of.second, of.source, of.target})
    if (other.batch != of.first.batch || other.batch < 1) return CUBLAS_STATUS_INVALID_VALUE;
  if (of.first.type != of.second.type || of.source.type != of.target.type ||
      (of.first.type == CUDA_R_32F && of.target.type != CUDA_R_32F) || !is_known(gemm) ||
      gemm.multiprocessors < 0 ||
      gemm.multiprocessors > static_cast<std::int32_t>(kMultiprocessors))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  return check_aux(gemm, of.target);
}

/// All GEMMs with one workspace must be on one stream.
void expect_own(const void* workspace, const Stream& stream) {
  static auto& users = *new std::map<std::int64_t, std::int64_t>;
  const std::int64_t piece = expect_inside(workspace, kWorkspaceBytes, "cublasLtMatmul").number;
  if (users.emplace(piece, stream.number).first->second != stream.number)
    refuse("cublasLtMatmul: two streams share a workspace");
}

struct Operands {
  const void* first;
  const void* second;
  const void* source;
  void* target;
};

cublasStatus_t check_alignments(const Algorithm& algorithm, const Operands& of,
                                const BlasGemm& gemm) {
  const void* const all[4] = {of.first, of.second, of.source, of.target};
  for (std::size_t at = 0; at < 4; ++at)
    if (alignment_of(all[at]) < algorithm.preference.alignments[at])
      return CUBLAS_STATUS_INVALID_VALUE;
  return alignment_of(gemm.aux) < algorithm.aux_alignment ? CUBLAS_STATUS_INVALID_VALUE
                                                          : CUBLAS_STATUS_SUCCESS;
}

void expect_readable(const BlasMatrix& matrix, std::int32_t device) {
  expect_inside(matrix.data, matrix.bytes(), "cublasLtMatmul");
  expect_reachable(matrix.data, device, "cublasLtMatmul");
}

BlasGemmOperands make_gemm_operands(const BlasGemm& gemm, const Layouts& of, const Operands& with) {
  BlasGemmOperands gemm_operands;
  gemm_operands.gemm = gemm;
  gemm_operands.first = {of.first, const_cast<void*>(with.first)};
  gemm_operands.second = {of.second, const_cast<void*>(with.second)};
  gemm_operands.source = {of.source, const_cast<void*>(with.source)};
  gemm_operands.target = {of.target, with.target};
  if (has_aux(gemm)) gemm_operands.aux = {aux_layout(gemm, of.target), gemm.aux};
  return gemm_operands;
}

Layouts find_layouts(cublasLtMatrixLayout_t first, cublasLtMatrixLayout_t second,
                     cublasLtMatrixLayout_t source, cublasLtMatrixLayout_t target,
                     const char* call) {
  return {blas_layouts().find(first, call), blas_layouts().find(second, call),
          blas_layouts().find(source, call), blas_layouts().find(target, call)};
}

/// The first GEMM of an algorithm may have to wait for the device, as the first launch of a kernel.
void load(std::uint64_t algorithm, std::int32_t device) {
  static auto& loaded = *new std::set<std::pair<std::uint64_t, std::int32_t>>;
  if (loaded.emplace(algorithm, device).second) await_device(device, "the first such product");
}

void put_gemm(const BlasGemmOperands& gemm_operands, std::byte* workspace, Stream& stream) {
  expect_own(workspace, stream);
  for (const BlasMatrix& matrix : {gemm_operands.first, gemm_operands.second, gemm_operands.target})
    expect_readable(matrix, stream.device);
  if (gemm_operands.beta != 0) expect_readable(gemm_operands.source, stream.device);
  if (gemm_operands.aux.data != nullptr) expect_readable(gemm_operands.aux, stream.device);
  put(stream, {"cublasLtMatmul", [=] {
                 std::memset(workspace, 0x5a, kWorkspaceBytes);
                 multiply(gemm_operands);
               }});
}

}  // namespace

}  // namespace bubblescope::tests::fake_cuda

using namespace bubblescope::tests::fake_cuda;

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t gemm, cublasLtMatrixLayout_t first,
    cublasLtMatrixLayout_t second, cublasLtMatrixLayout_t source, cublasLtMatrixLayout_t target,
    cublasLtMatmulPreference_t preference, int requested, cublasLtMatmulHeuristicResult_t* results,
    int* found) {
  constexpr const char* kCall = "cublasLtMatmulAlgoGetHeuristic";
  return blas_call(kCall, [&] {
    blas_handles().find(handle, kCall);
    const BlasGemm& of = blas_gemms().find(gemm, kCall);
    const Layouts layouts = find_layouts(first, second, source, target, kCall);
    const BlasPreference& prefers = blas_preferences().find(preference, kCall);
    *found = 0;
    if (requested < 1) return CUBLAS_STATUS_INVALID_VALUE;
    if (const cublasStatus_t status = check(of, layouts); status != CUBLAS_STATUS_SUCCESS)
      return status;
    if (prefers.workspace_bytes < kWorkspaceBytes) return CUBLAS_STATUS_NOT_SUPPORTED;
    for (*found = 0; *found < std::min(requested, kAlgorithmsOfGemm); ++*found) {
      const std::uint64_t number = algorithms().size() + 1;
      algorithms()[number] = {of.kind(), layouts, prefers,
                              std::min<std::size_t>(alignment_of(of.aux), 16),
                              *found < count_filling(of, layouts)};
      results[*found] = {};
      results[*found].algo.data[0] = number;
      results[*found].workspaceSize = kWorkspaceBytes;
      results[*found].state = CUBLAS_STATUS_SUCCESS;
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t gemm, const void* scale,
                              const void* first, cublasLtMatrixLayout_t of_first,
                              const void* second, cublasLtMatrixLayout_t of_second,
                              const void* beta, const void* source,
                              cublasLtMatrixLayout_t of_source, void* target,
                              cublasLtMatrixLayout_t of_target,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  constexpr const char* kCall = "cublasLtMatmul";
  return blas_call(kCall, [&] {
    const BlasHandle& by = blas_handles().find(handle, kCall);
    const BlasGemm& of = blas_gemms().find(gemm, kCall);
    const Layouts layouts = find_layouts(of_first, of_second, of_source, of_target, kCall);
    Stream& on = stream_of(stream, kCall);
    if (by.device != current_device() || on.device != current_device())
      return CUBLAS_STATUS_ARCH_MISMATCH;
    const Algorithm& chosen = algorithms().at(algorithm->data[0]);
    if (chosen.kind != of.kind() || chosen.layouts != layouts) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (workspace_bytes < kWorkspaceBytes || alignment_of(workspace) < kWorkspaceAlignment ||
        (source == target && layouts.source != layouts.target))
      return CUBLAS_STATUS_INVALID_VALUE;
    const Operands operands{first, second, source, target};
    if (const cublasStatus_t status = check_alignments(chosen, operands, of);
        status != CUBLAS_STATUS_SUCCESS)
      return status;
    if (chosen.fills_device && on.context != nullptr) return CUBLAS_STATUS_EXECUTION_FAILED;
    load(algorithm->data[0], on.device);
    BlasGemmOperands gemm_operands = make_gemm_operands(of, layouts, operands);
    gemm_operands.scale = *static_cast<const float*>(scale);
    gemm_operands.beta = *static_cast<const float*>(beta);
    put_gemm(gemm_operands, static_cast<std::byte*>(workspace), on);
    return CUBLAS_STATUS_SUCCESS;
  });
}
