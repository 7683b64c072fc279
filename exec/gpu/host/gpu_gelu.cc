// GEMMs that are followed by a GELU or its gradient. It is fused if that is asked for and cuBLASLt
// supports it, or else runs as a kernel. Both ways allocate the same memory.
#include <algorithm>

#include "exec/gpu/host/gpu_layers.h"

namespace bubblescope::exec {

namespace {

/// cuBLASLt requires the row length of the auxiliary matrix to be a multiple of this many entries.
constexpr std::int32_t kAuxEntries = 8;

}  // namespace

GeluOutput GpuLayers::gemm_gelu(const GpuOperand& left, const GpuOperand& right,
                                bool keeps_before) {
  const std::int32_t rows = left.transposed ? left.matrix.columns : left.matrix.rows;
  const std::int32_t columns = right.transposed ? right.matrix.rows : right.matrix.columns;
  const GeluOutput result{make(rows, columns), make(rows, columns)};
  BubblescopeGemm gemm = gemm_of(left, right, result.after);
  gemm.epilogue = kBubblescopeGelu;
  gemm.aux = keeps_before ? result.before.data : nullptr;
  if (multiply_fused(gemm)) return result;
  multiply(left, right, result.before);
  launch(result.before, GeluArguments{result.after.data, result.before.data});
  return result;
}

GpuMatrix GpuLayers::gemm_gelu_grad(const GpuOperand& left, const GpuOperand& right,
                                    const GpuMatrix& before) {
  const GpuMatrix grad = make(before.rows, before.columns);
  BubblescopeGemm gemm = gemm_of(left, right, grad);
  gemm.epilogue = kBubblescopeGeluGrad;
  gemm.aux = before.data;
  if (multiply_fused(gemm)) return grad;
  multiply(left, right, grad);
  launch(before, GeluGradArguments{grad.data, before.data, grad.data});
  return grad;
}

/// Asks the library once for every kind of GEMM, so that no GEMM fails within a step. Pooled memory
/// is always aligned alike.
bool GpuLayers::can_fuse(const BubblescopeGemm& gemm) {
  const bool is_gradient = gemm.epilogue == kBubblescopeGeluGrad;
  const bool has_aux = gemm.aux != nullptr;
  for (const auto& [use, used_aux] : epilogues_)
    if (use.rows == gemm.rows && use.k == gemm.k && use.columns == gemm.columns &&
        use.is_gradient == is_gradient && used_aux == has_aux)
      return use.is_fused;
  const bool can = gemm.columns % kAuxEntries == 0 && gpu_.can_multiply(blas_handle_, gemm);
  epilogues_.emplace_back(EpilogueUse{gemm.rows, gemm.k, gemm.columns, is_gradient, can}, has_aux);
  return can;
}

bool GpuLayers::multiply_fused(const BubblescopeGemm& gemm) {
  if (epilogue_ == Epilogue::kSeparate || !can_fuse(gemm)) return false;
  gpu_.multiply(blas_handle_, gemm, stream_);
  return true;
}

std::vector<EpilogueUse> GpuLayers::epilogues() const {
  std::vector<EpilogueUse> uses;
  for (const auto& [use, used_aux] : epilogues_)
    if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
  return uses;
}

}  // namespace bubblescope::exec
