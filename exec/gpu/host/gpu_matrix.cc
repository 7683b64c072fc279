// Views and GEMMs of matrices.
#include "exec/gpu/host/gpu_matrix.h"

namespace bubblescope {

GpuMatrix rows_of(const GpuMatrix& matrix, std::int32_t begin, std::int32_t count) {
  GpuMatrix rows = matrix;
  const auto first = static_cast<std::size_t>(begin) * static_cast<std::size_t>(matrix.columns);
  rows.data = piece_of(matrix, first, 0).data;
  rows.rows = count;
  rows.pooled = false;
  return rows;
}

BubblescopeProduct product_of(const GpuFactor& left, const GpuFactor& right,
                              const GpuMatrix& target, const GpuMatrix& source) {
  BubblescopeProduct product{};
  product.rows = target.rows;
  product.columns = target.columns;
  product.inner = left.transposed ? left.matrix.rows : left.matrix.columns;
  product.batch = 1;
  product.left = {left.matrix.data, left.matrix.columns, 0, left.transposed ? 1 : 0};
  product.right = {right.matrix.data, right.matrix.columns, 0, right.transposed ? 1 : 0};
  product.source = source.data;
  product.target = target.data;
  product.target_stride = target.columns;
  product.scale = 1;
  product.number = left.matrix.number;
  product.target_number = target.number;
  return product;
}

GpuPiece piece_of(const GpuMatrix& matrix, std::size_t begin, std::size_t count) {
  const auto size = static_cast<std::size_t>(matrix.entry_bytes());
  return {static_cast<char*>(matrix.data) + begin * size, count * size};
}

}  // namespace bubblescope
