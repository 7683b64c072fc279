// GEMMs that are followed by a GELU or its gradient. It is fused if that is asked for and cuBLASLt
// supports it, or else runs as a kernel. Both ways allocate the same memory.
#include <algorithm>

#include "exec/gpu/host/gpu_layers.h"

namespace bubblescope {

namespace {

/// cuBLASLt requires the row length of the auxiliary matrix to be a multiple of this many entries.
constexpr std::int32_t kAuxEntries = 8;

}  // namespace

Activated GpuLayers::product_gelu(const GpuFactor& left, const GpuFactor& right,
                                  bool keeps_before) {
  const std::int32_t rows = left.transposed ? left.matrix.columns : left.matrix.rows;
  const std::int32_t columns = right.transposed ? right.matrix.rows : right.matrix.columns;
  const Activated made{make(rows, columns), make(rows, columns)};
  BubblescopeProduct product = product_of(left, right, made.after);
  product.epilogue = kBubblescopeGelu;
  product.aux = keeps_before ? made.before.data : nullptr;
  if (multiply_fused(product)) return made;
  multiply(left, right, made.before);
  BubblescopeLaunch launched = order(Kernel::kGelu, made.before);
  launched.target = made.after.data;
  launched.inputs[0] = made.before.data;
  launch(launched);
  return made;
}

GpuMatrix GpuLayers::product_gelu_grad(const GpuFactor& left, const GpuFactor& right,
                                       const GpuMatrix& before) {
  const GpuMatrix grad = make(before.rows, before.columns);
  BubblescopeProduct product = product_of(left, right, grad);
  product.epilogue = kBubblescopeGeluGrad;
  product.aux = before.data;
  if (multiply_fused(product)) return grad;
  multiply(left, right, grad);
  BubblescopeLaunch launched = order(Kernel::kGeluGrad, before);
  launched.target = grad.data;
  launched.inputs[0] = before.data;
  launched.inputs[1] = grad.data;
  launch(launched);
  return grad;
}

/// Asks the library before every such GEMM, so that no GEMM fails within a step. It remembers the
/// answer.
bool GpuLayers::multiply_fused(const BubblescopeProduct& product) {
  if (epilogue_ == Epilogue::kSeparate) return false;
  const bool can = product.columns % kAuxEntries == 0 && gpu_.can_multiply(multiplier_, product);
  const EpilogueUse use{product.rows, product.inner, product.columns,
                        product.epilogue == kBubblescopeGeluGrad, can};
  if (std::find(epilogues_.begin(), epilogues_.end(), use) == epilogues_.end())
    epilogues_.push_back(use);
  if (can) gpu_.multiply(multiplier_, product, stream_);
  return can;
}

}  // namespace bubblescope
