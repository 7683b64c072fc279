// GEMMs by OpenBLAS where it is installed, by plain loops elsewhere.
#include "exec/training/matrix.h"

#include <algorithm>

#include "exec/training/blas.h"

namespace bubblescope::exec {

namespace {

float entry(const Operand& factor, std::int32_t row, std::int32_t column) {
  return factor.transposed ? factor.data[std::ptrdiff_t{column} * factor.stride + row]
                           : factor.data[std::ptrdiff_t{row} * factor.stride + column];
}

/// The inner loop runs along stored rows, so that the compiler can vectorize it.
void multiply_plainly(const Operand& left, const Operand& right, const GemmTarget& target,
                      const GemmOptions& options) {
  std::vector<float> turned;
  const float* right_data = right.data;
  std::ptrdiff_t right_stride = right.stride;
  if (right.transposed) {
    for (std::int32_t k = 0; k < right.rows; ++k)
      for (std::int32_t column = 0; column < right.columns; ++column)
        turned.push_back(entry(right, k, column));
    right_data = turned.data();
    right_stride = right.columns;
  }
  for (std::int32_t row = 0; row < target.rows; ++row) {
    float* const out = target.data + std::ptrdiff_t{row} * target.stride;
    if (!options.add) std::fill(out, out + target.columns, 0.0F);
    for (std::int32_t k = 0; k < left.columns; ++k) {
      const float factor = options.scale * entry(left, row, k);
      const float* const in = right_data + k * right_stride;
      for (std::int32_t column = 0; column < target.columns; ++column)
        out[column] += factor * in[column];
    }
  }
}

}  // namespace

Operand whole(const Matrix& matrix) {
  return {matrix.values.data(), matrix.rows, matrix.columns, matrix.columns};
}

GemmTarget onto(Matrix& matrix) {
  return {matrix.values.data(), matrix.rows, matrix.columns, matrix.columns};
}

Operand transposed(const Operand& factor) {
  return {factor.data, factor.columns, factor.rows, factor.stride, !factor.transposed};
}

Operand part(const Matrix& matrix, const Block& block) {
  return {matrix.row(block.row) + block.column, block.row_count, block.column_count,
          matrix.columns};
}

GemmTarget onto(Matrix& matrix, const Block& block) {
  return {matrix.row(block.row) + block.column, block.row_count, block.column_count,
          matrix.columns};
}

void multiply(const Operand& left, const Operand& right, const GemmTarget& target,
              const GemmOptions& options) {
  const Blas& blas = load_blas();
  if (blas.multiply == nullptr) return multiply_plainly(left, right, target, options);
  const auto order = [](const Operand& factor) {
    return factor.transposed ? kTransposed : kNotTransposed;
  };
  blas.multiply(kRowMajor, order(left), order(right), target.rows, target.columns, left.columns,
                options.scale, left.data, left.stride, right.data, right.stride,
                options.add ? 1.0F : 0.0F, target.data, target.stride);
}

Matrix product(const Operand& left, const Operand& right) {
  Matrix result(left.rows, right.columns);
  multiply(left, right, onto(result));
  return result;
}

void add(Matrix& left, const Matrix& right) {
  std::transform(left.values.begin(), left.values.end(), right.values.begin(), left.values.begin(),
                 [](float a, float b) { return a + b; });
}

void multiply(std::vector<Matrix>& matrices, float factor) {
  if (factor == 1) return;
  for (Matrix& matrix : matrices)
    for (float& value : matrix.values) value *= factor;
}

const std::string& gemm_library() { return load_blas().name; }

}  // namespace bubblescope::exec
