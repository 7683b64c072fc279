// Makes views and GEMMs of matrices.
#include "exec/gpu/host/gpu_matrix.h"

namespace bubblescope::exec {

GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count) {
  GpuMatrix rows = matrix;
  const auto first = static_cast<std::size_t>(begin) * static_cast<std::size_t>(matrix.columns);
  rows.data = buffer_of(matrix, first, 0).data;
  rows.rows = count;
  rows.pooled = false;
  return rows;
}

BubblescopeGemm gemm_of(const GpuOperand& left, const GpuOperand& right, const GpuMatrix& target,
                        const GpuMatrix& source) {
  BubblescopeGemm gemm{};
  gemm.rows = target.rows;
  gemm.columns = target.columns;
  gemm.k = left.transposed ? left.matrix.rows : left.matrix.columns;
  gemm.batch = 1;
  gemm.left = {left.matrix.data, left.matrix.columns, 0, left.transposed ? 1 : 0};
  gemm.right = {right.matrix.data, right.matrix.columns, 0, right.transposed ? 1 : 0};
  gemm.source = source.data;
  gemm.target = target.data;
  gemm.target_stride = target.columns;
  gemm.scale = 1;
  gemm.dtype = left.matrix.dtype;
  gemm.target_dtype = target.dtype;
  return gemm;
}

GpuBuffer buffer_of(const GpuMatrix& matrix, std::size_t begin, std::size_t count) {
  const auto size = static_cast<std::size_t>(matrix.entry_bytes());
  if (matrix.data == nullptr) return {nullptr, count * size};  // in a dry run
  return {static_cast<char*>(matrix.data) + begin * size, count * size};
}

}  // namespace bubblescope::exec
