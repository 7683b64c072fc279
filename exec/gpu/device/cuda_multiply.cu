// GEMMs by cuBLASLt. The algorithm of a GEMM is chosen once and cached. A handle has its own
// workspace and belongs to one stream.
//
// cuBLASLt chooses for the whole device. On a partition such an algorithm is usually the best as
// well, but one that needs more blocks at once than the partition holds does not start. The next
// best is then taken, and after those the one for the partition's number of multiprocessors.
//
// cuBLASLt's matrices are column-major and ours row-major, so it sees every matrix transposed:
// target = left * right becomes target^T = right^T * left^T.
#include <array>
#include <map>
#include <memory>

#include "exec/gpu/device/cuda_blas.cuh"
#include "exec/gpu/device/cuda_calls.cuh"

namespace bubblescope::exec {

namespace {

constexpr int kCandidates = 8;
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's advice for Hopper

/// Everything on which the choice of an algorithm depends.
using PlanKey = std::array<std::int64_t, 22>;

/// The algorithms of a GEMM.
struct GemmPlan {
  PlanKey key{};
  GemmPlan* next = nullptr;  ///< the one that followed it last time: steps repeat their GEMMs
  std::string error;  ///< why the GEMM is not possible
  const CudaBlas* blas = nullptr;
  cublasLtMatmulDesc_t gemm = nullptr;
  cublasLtMatrixLayout_t left = nullptr;
  cublasLtMatrixLayout_t right = nullptr;
  cublasLtMatrixLayout_t target = nullptr;
  std::array<cublasLtMatmulAlgo_t, kCandidates> algorithms{};  ///< the best one last
  std::size_t candidates = 0;                                  ///< of the algorithms
  bool has_started = false;  ///< the last one starts here
  bool has_sm_count = false;  ///< the partition's

  GemmPlan() = default;
  GemmPlan(const GemmPlan&) = delete;
  GemmPlan& operator=(const GemmPlan&) = delete;
  ~GemmPlan() {
    if (gemm != nullptr) blas->cublasLtMatmulDescDestroy(gemm);
    for (const cublasLtMatrixLayout_t layout : {left, right, target})
      if (layout != nullptr) blas->cublasLtMatrixLayoutDestroy(layout);
  }
};

struct BlasLtHandle {
  const CudaBlas* blas = nullptr;
  cublasLtHandle_t handle = nullptr;
  std::int32_t device = 0;
  std::int32_t multiprocessors = 0;
  bool sets_sm_count = false;  ///< of every GEMM
  void* workspace = nullptr;
  std::map<PlanKey, GemmPlan> plans;
  GemmPlan* last = nullptr;  ///< of the GEMM before

  BlasLtHandle() = default;
  BlasLtHandle(const BlasLtHandle&) = delete;
  BlasLtHandle& operator=(const BlasLtHandle&) = delete;
  ~BlasLtHandle() {
    if (!may_release()) return;
    if (handle != nullptr) blas->cublasLtDestroy(handle);
    if (workspace != nullptr) cudaFree(workspace);
  }
};

cudaDataType_t type_of(std::int32_t dtype) {
  return dtype == kBubblescopeBfloat16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// Returns the largest power of two, up to 256, that divides an address.
std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t lowest_bit = address & (~address + 1);
  return lowest_bit == 0 || lowest_bit > 256 ? 256 : static_cast<std::uint32_t>(lowest_bit);
}

PlanKey key_of(const BubblescopeGemm& p) {
  return {p.rows,
          p.columns,
          p.k,
          p.batch,
          p.left.stride,
          p.left.step,
          p.left.transposed,
          p.right.stride,
          p.right.step,
          p.right.transposed,
          p.target_stride,
          p.target_step,
          p.dtype,
          p.target_dtype,
          p.source == nullptr ? 0 : (p.source == p.target ? 1 : 2),
          alignment_of(p.left.data),
          alignment_of(p.right.data),
          alignment_of(p.target),
          alignment_of(p.source),
          p.epilogue,
          alignment_of(p.aux),
          p.aux != nullptr ? 1 : 0};
}

struct LayoutShape {
  std::int32_t dtype;
  std::int64_t rows;  ///< in cuBLASLt's column-major order
  std::int64_t columns;
  std::int64_t stride;
  std::int64_t step;
};

const char* create_layout(const CudaBlas& blas, const LayoutShape& shape, std::int32_t batch,
                          cublasLtMatrixLayout_t& layout) {
  BUBBLESCOPE_BLAS(blas.cublasLtMatrixLayoutCreate(
      &layout, type_of(shape.dtype), static_cast<std::uint64_t>(shape.rows),
      static_cast<std::uint64_t>(shape.columns), shape.stride));
  if (batch == 1) return nullptr;
  BUBBLESCOPE_BLAS(blas.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                         &batch, sizeof batch));
  BUBBLESCOPE_BLAS(blas.cublasLtMatrixLayoutSetAttribute(
      layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &shape.step, sizeof shape.step));
  return nullptr;
}

/// Describes a stored matrix of `rows` by `columns`; its rows become columns.
LayoutShape shape_of(const BubblescopeOperand& factor, std::int32_t dtype, std::int32_t rows,
                     std::int32_t columns) {
  if (factor.transposed != 0) return {dtype, rows, columns, factor.stride, factor.step};
  return {dtype, columns, rows, factor.stride, factor.step};
}

const char* create_layouts(const CudaBlas& blas, const BubblescopeGemm& p, GemmPlan& plan) {
  const char* error =
      create_layout(blas, shape_of(p.left, p.dtype, p.rows, p.k), p.batch, plan.left);
  if (!error)
    error = create_layout(blas, shape_of(p.right, p.dtype, p.k, p.columns), p.batch, plan.right);
  if (!error)
    error = create_layout(blas, {p.target_dtype, p.columns, p.rows, p.target_stride, p.target_step},
                          p.batch, plan.target);
  return error;
}

/// The auxiliary pointer is set again for every GEMM; here only its alignment matters.
const char* set_epilogue(const CudaBlas& blas, const BubblescopeGemm& p,
                         cublasLtMatmulDesc_t gemm) {
  if (p.epilogue == kBubblescopeNoEpilogue) return nullptr;
  const cublasLtEpilogue_t epilogue = p.epilogue == kBubblescopeGeluGrad ? CUBLASLT_EPILOGUE_DGELU
                                      : p.aux != nullptr ? CUBLASLT_EPILOGUE_GELU_AUX
                                                         : CUBLASLT_EPILOGUE_GELU;
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescSetAttribute(gemm, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                                       &epilogue, sizeof epilogue));
  if (p.aux == nullptr) return nullptr;
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescSetAttribute(gemm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD,
                                                       &p.target_stride, sizeof p.target_stride));
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescSetAttribute(
      gemm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p.aux, sizeof p.aux));
  return nullptr;
}

const char* set_sm_count(const BlasLtHandle& with, GemmPlan& plan) {
  plan.has_sm_count = true;
  BUBBLESCOPE_BLAS(with.blas->cublasLtMatmulDescSetAttribute(
      plan.gemm, CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, &with.multiprocessors,
      sizeof with.multiprocessors));
  return nullptr;
}

/// cuBLASLt's first operand is our right one.
const char* create_matmul(const BlasLtHandle& with, const BubblescopeGemm& p, GemmPlan& plan) {
  const CudaBlas& blas = *with.blas;
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescCreate(&plan.gemm, CUBLAS_COMPUTE_32F, CUDA_R_32F));
  const cublasOperation_t first = p.right.transposed != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = p.left.transposed != 0 ? CUBLAS_OP_T : CUBLAS_OP_N;
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescSetAttribute(plan.gemm, CUBLASLT_MATMUL_DESC_TRANSA,
                                                       &first, sizeof first));
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulDescSetAttribute(plan.gemm, CUBLASLT_MATMUL_DESC_TRANSB,
                                                       &second, sizeof second));
  if (with.sets_sm_count)
    if (const char* const error = set_sm_count(with, plan)) return error;
  return set_epilogue(blas, p, plan.gemm);
}

/// Returns a text such as "64 x 32 by 32 x 16".
std::string sizes_of(const BubblescopeGemm& p) {
  const std::string inner = std::to_string(p.k);
  return std::to_string(p.rows) + " x " + inner + " by " + inner + " x " +
         std::to_string(p.columns);
}

/// Owns the preference, as several calls may fail after its creation.
struct Preference {
  explicit Preference(const CudaBlas& opened) : blas(opened) {}
  ~Preference() {
    if (handle != nullptr) blas.cublasLtMatmulPreferenceDestroy(handle);
  }
  const CudaBlas& blas;
  cublasLtMatmulPreference_t handle = nullptr;
};

const char* set_preference(const CudaBlas& blas, const BubblescopeGemm& p,
                           cublasLtMatmulPreference_t preference) {
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkspaceBytes,
      sizeof kWorkspaceBytes));
  const std::uint32_t first = alignment_of(p.right.data);
  const std::uint32_t second = alignment_of(p.left.data);
  const std::uint32_t source = alignment_of(p.source == nullptr ? p.target : p.source);
  const std::uint32_t target = alignment_of(p.target);
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &first, sizeof first));
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &second, sizeof second));
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &source, sizeof source));
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &target, sizeof target));
  return nullptr;
}

const char* choose(const BlasLtHandle& blas_handle, const BubblescopeGemm& p, GemmPlan& plan) {
  const CudaBlas& blas = *blas_handle.blas;
  Preference preference(blas);
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulPreferenceCreate(&preference.handle));
  if (const char* const error = set_preference(blas, p, preference.handle)) return error;
  std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
  int found = 0;
  BUBBLESCOPE_BLAS(blas.cublasLtMatmulAlgoGetHeuristic(
      blas_handle.handle, plan.gemm, plan.right, plan.left, plan.target, plan.target,
      preference.handle, kCandidates, results.data(), &found));
  for (int at = found - 1; at >= 0; --at)
    if (const auto& result = results[static_cast<std::size_t>(at)];
        result.state == CUBLAS_STATUS_SUCCESS)
      plan.algorithms[plan.candidates++] = result.algo;
  if (plan.candidates == 0)
    return store_error("cuBLASLt has no algorithm to multiply " + sizes_of(p));
  return nullptr;
}

const char* make_plan(const BlasLtHandle& blas_handle, const BubblescopeGemm& p, GemmPlan& plan) {
  plan.blas = blas_handle.blas;
  const char* error = create_matmul(blas_handle, p, plan);
  if (!error) error = create_layouts(*plan.blas, p, plan);
  if (!error) error = choose(blas_handle, p, plan);
  return error;
}

/// Chooses once; also caches that there is no algorithm.
GemmPlan& find_plan(BlasLtHandle& with, const PlanKey& key, const BubblescopeGemm& p) {
  const auto [at, is_new] = with.plans.try_emplace(key);
  if (!is_new) return at->second;
  at->second.key = key;
  if (const char* const error = make_plan(with, p, at->second)) at->second.error = error;
  return at->second;
}

const char* can_multiply(void* blas_handle, const BubblescopeGemm* p, std::int32_t* can) {
  auto& with = *static_cast<BlasLtHandle*>(blas_handle);
  BUBBLESCOPE_CUDA(cudaSetDevice(with.device));
  *can = find_plan(with, key_of(*p), *p).error.empty() ? 1 : 0;
  return nullptr;
}

/// Choosing an algorithm may launch and allocate, which does not belong into a graph.
const char* expect_chosen(const BlasLtHandle& with, const PlanKey& key, const BubblescopeGemm& p,
                          cudaStream_t stream) {
  if (with.plans.contains(key)) return nullptr;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  BUBBLESCOPE_CUDA(cudaStreamIsCapturing(stream, &status));
  if (status == cudaStreamCaptureStatusNone) return nullptr;
  return store_error("a GEMM of " + sizes_of(p) +
                     " occurs for the first time while a graph is captured, so that its algorithm "
                     "would be chosen in the capture");
}

/// Looks a plan up only if the GEMM does not follow the one that it followed before.
const char* next_plan(BlasLtHandle& with, const BubblescopeGemm& p, cudaStream_t stream) {
  const PlanKey key = key_of(p);
  GemmPlan* next = with.last != nullptr ? with.last->next : nullptr;
  if (next == nullptr || next->key != key) {
    if (const char* const error = expect_chosen(with, key, p, stream)) return error;
    next = &find_plan(with, key, p);
    if (with.last != nullptr) with.last->next = next;
  }
  with.last = next;
  return next->error.empty() ? nullptr : store_error(next->error);
}

cublasStatus_t enqueue(const BlasLtHandle& with, const GemmPlan& plan, const BubblescopeGemm& p,
                       cudaStream_t stream) {
  const float keep = p.source != nullptr ? 1.0F : 0.0F;
  const void* const source = p.source != nullptr ? p.source : p.target;
  return with.blas->cublasLtMatmul(with.handle, plan.gemm, &p.scale, p.right.data, plan.right,
                                   p.left.data, plan.left, &keep, source, plan.target, p.target,
                                   plan.target, &plan.algorithms[plan.candidates - 1],
                                   with.workspace, kWorkspaceBytes, stream);
}

/// Chooses again, for the partition, when no algorithm for the whole device has started.
const char* choose_for_partition(const BlasLtHandle& with, const BubblescopeGemm& p,
                                 GemmPlan& plan) {
  if (plan.has_sm_count)
    return store_error("no algorithm of cuBLASLt starts to multiply " + sizes_of(p) + " on " +
                       std::to_string(with.multiprocessors) + " multiprocessors");
  if (const char* const error = set_sm_count(with, plan)) return error;
  return choose(with, p, plan);
}

/// Call when an algorithm has not started. An error of its launch is gone once it is read; one that
/// stays is of something that ran before.
const char* take_next_algorithm(const BlasLtHandle& with, const BubblescopeGemm& p,
                                GemmPlan& plan) {
  cudaGetLastError();
  if (const char* const error = check(cudaGetLastError(), "cublasLtMatmul")) return error;
  if (--plan.candidates > 0) return nullptr;
  const char* const error = choose_for_partition(with, p, plan);
  if (error != nullptr) plan.error = error;
  return error;
}

const char* multiply(void* blas_handle, const BubblescopeGemm* p, void* stream) {
  auto& with = *static_cast<BlasLtHandle*>(blas_handle);
  const cudaStream_t on = static_cast<CudaStream*>(stream)->stream;
  BUBBLESCOPE_CUDA(cudaSetDevice(with.device));
  if (const char* const error = next_plan(with, *p, on)) return error;
  GemmPlan& plan = *with.last;
  if (p->aux != nullptr)
    BUBBLESCOPE_BLAS(with.blas->cublasLtMatmulDescSetAttribute(
        plan.gemm, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &p->aux, sizeof p->aux));
  cublasStatus_t status = enqueue(with, plan, *p, on);
  while (status == CUBLAS_STATUS_EXECUTION_FAILED && !plan.has_started) {
    if (const char* const error = take_next_algorithm(with, *p, plan)) return error;
    status = enqueue(with, plan, *p, on);
  }
  plan.has_started = true;
  return check_blas(status, "cublasLtMatmul");
}

const char* create_blas_handle(std::int32_t device, std::int32_t multiprocessors,
                               std::int32_t sets_sm_count, void** created) {
  const char* error = nullptr;
  const CudaBlas* const blas = load_cuda_blas(&error);
  if (blas == nullptr) return error;
  auto blas_handle = std::make_unique<BlasLtHandle>();
  blas_handle->blas = blas;
  blas_handle->device = device;
  blas_handle->multiprocessors = multiprocessors;
  blas_handle->sets_sm_count = sets_sm_count != 0;
  BUBBLESCOPE_CUDA(cudaSetDevice(device));
  BUBBLESCOPE_BLAS(blas->cublasLtCreate(&blas_handle->handle));
  BUBBLESCOPE_CUDA(cudaMalloc(&blas_handle->workspace, kWorkspaceBytes));
  *created = blas_handle.release();
  return nullptr;
}

std::int64_t blas_version(void* blas_handle) {
  return static_cast<std::int64_t>(
      static_cast<BlasLtHandle*>(blas_handle)->blas->cublasLtGetVersion());
}

void release_blas_handle(void* blas_handle) { delete static_cast<BlasLtHandle*>(blas_handle); }

}  // namespace

void add_multiply_calls(BubblescopeGpu& calls) {
  calls.create_blas_handle = create_blas_handle;
  calls.release_blas_handle = release_blas_handle;
  calls.blas_version = blas_version;
  calls.multiply = multiply;
  calls.can_multiply = can_multiply;
}

}  // namespace bubblescope::exec
