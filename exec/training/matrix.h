// Row-major float32 matrices and their GEMMs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope::exec {

struct Matrix {
  Matrix() = default;
  /// Fills the matrix with zeros.
  Matrix(std::int32_t row_count, std::int32_t column_count)
      : rows(row_count),
        columns(column_count),
        values(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(column_count)) {}

  std::int32_t rows = 0;
  std::int32_t columns = 0;
  std::vector<float> values;

  float* row(std::int32_t at) { return values.data() + std::ptrdiff_t{at} * columns; }
  const float* row(std::int32_t at) const { return values.data() + std::ptrdiff_t{at} * columns; }
  std::int64_t bytes() const { return static_cast<std::int64_t>(values.size() * sizeof(float)); }

  bool operator==(const Matrix&) const = default;
};

/// An operand of a GEMM: a matrix or a block of it, possibly transposed.
struct Operand {
  const float* data;
  std::int32_t rows;  ///< after transposing
  std::int32_t columns;
  std::int32_t stride;  ///< between stored rows
  bool transposed = false;
};

/// The result of a GEMM: a matrix or a block of it.
struct GemmTarget {
  float* data;
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t stride;
};

/// Options of a GEMM.
struct GemmOptions {
  float scale = 1;
  bool add = false;  ///< accumulate instead of replacing the target
};

Operand whole(const Matrix& matrix);
GemmTarget onto(Matrix& matrix);
Operand transposed(const Operand& factor);

/// Rows row to row + row_count - 1 of columns column to column + column_count - 1.
struct Block {
  std::int32_t row = 0;
  std::int32_t row_count = 0;
  std::int32_t column = 0;
  std::int32_t column_count = 0;
};
Operand part(const Matrix& matrix, const Block& block);
GemmTarget onto(Matrix& matrix, const Block& block);

/// target = scale * left * right, or target += with `add`. The shapes must fit.
void multiply(const Operand& left, const Operand& right, const GemmTarget& target,
              const GemmOptions& options = {});

/// Returns left * right.
Matrix product(const Operand& left, const Operand& right);

/// left += right, entry by entry.
void add(Matrix& left, const Matrix& right);

/// Multiplies every entry of every matrix by `factor`.
void multiply(std::vector<Matrix>& matrices, float factor);

/// The implementation of multiply(): "OpenBLAS (...)" or "plain loops". Loads the library, as the
/// first multiply() would.
const std::string& gemm_library();

}  // namespace bubblescope::exec
