// Asks the library what it can fuse.
#include "exec/gpu/host/gpu_gelu.h"

#include <algorithm>
#include <cstdint>

namespace bubblescope::exec {

namespace {

/// cuBLASLt requires the row length of the auxiliary matrix to be a multiple of this many entries.
constexpr std::int32_t kAuxEntries = 8;

}  // namespace

GeluOutput GpuGelu::gemm(const GpuOperand& left, const GpuOperand& right, bool keeps_before) {
  const std::int32_t rows = left.transposed ? left.matrix.columns : left.matrix.rows;
  const std::int32_t columns = right.transposed ? right.matrix.rows : right.matrix.columns;
  const GeluOutput result{stream_.make(rows, columns), stream_.make(rows, columns)};
  BubblescopeGemm gemm = gemm_of(left, right, result.after);
  gemm.epilogue = kBubblescopeGelu;
  gemm.aux = keeps_before ? result.before.data : nullptr;
  if (can_fuse(gemm)) {
    stream_.multiply(gemm);
    return result;
  }
  stream_.multiply(left, right, result.before);
  stream_.launch(result.before, GeluArguments{result.after.data, result.before.data});
  return result;
}

GpuMatrix GpuGelu::gemm_grad(const GpuOperand& left, const GpuOperand& right,
                             const GpuMatrix& before) {
  const GpuMatrix grad = stream_.make(before.rows, before.columns);
  BubblescopeGemm gemm = gemm_of(left, right, grad);
  gemm.epilogue = kBubblescopeGeluGrad;
  gemm.aux = before.data;
  if (can_fuse(gemm)) {
    stream_.multiply(gemm);
    return grad;
  }
  stream_.multiply(left, right, grad);
  stream_.launch(before, GeluGradArguments{grad.data, before.data, grad.data});
  return grad;
}

/// Asks the library once for every kind of GEMM, so that no GEMM fails within a step. Pooled memory
/// is always aligned alike.
bool GpuGelu::can_fuse(const BubblescopeGemm& gemm) {
  if (epilogue_ == Epilogue::kSeparate) return false;
  const bool is_gradient = gemm.epilogue == kBubblescopeGeluGrad;
  const bool has_aux = gemm.aux != nullptr;
  for (const auto& [use, used_aux] : uses_)
    if (use.rows == gemm.rows && use.k == gemm.k && use.columns == gemm.columns &&
        use.is_gradient == is_gradient && used_aux == has_aux)
      return use.is_fused;
  const bool can = gemm.columns % kAuxEntries == 0 && stream_.can_multiply(gemm);
  uses_.emplace_back(EpilogueUse{gemm.rows, gemm.k, gemm.columns, is_gradient, can}, has_aux);
  return can;
}

std::vector<EpilogueUse> GpuGelu::uses() const {
  std::vector<EpilogueUse> uses;
  for (const auto& [use, used_aux] : uses_)
    if (std::find(uses.begin(), uses.end(), use) == uses.end()) uses.push_back(use);
  return uses;
}

}  // namespace bubblescope::exec
