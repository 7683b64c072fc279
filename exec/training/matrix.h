// Matrices of float32, row by row, and their products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bubblescope {

struct Matrix {
  Matrix() = default;
  /// All zero.
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

/// One factor of a product: a matrix or some of its columns, as it is or turned over.
struct Factor {
  const float* data;
  std::int32_t rows;  ///< after turning over
  std::int32_t columns;
  std::int32_t stride;  ///< from one stored row to the next
  bool transposed = false;
};

/// Where a product goes.
struct Target {
  float* data;
  std::int32_t rows;
  std::int32_t columns;
  std::int32_t stride;
};

/// What is done with a product.
struct ProductOptions {
  float scale = 1;
  bool add = false;  ///< to what the target holds, instead of replacing it
};

Factor whole(const Matrix& matrix);
Target onto(Matrix& matrix);
Factor transposed(const Factor& factor);

/// Columns first..first+count-1 of rows row..row+row_count-1.
struct Block {
  std::int32_t row = 0;
  std::int32_t row_count = 0;
  std::int32_t column = 0;
  std::int32_t column_count = 0;
};
Factor part(const Matrix& matrix, const Block& block);
Target onto(Matrix& matrix, const Block& block);

/// target = scale * left * right, or adds it. The shapes must fit.
void multiply(const Factor& left, const Factor& right, const Target& target,
              const ProductOptions& options = {});

/// A new matrix left * right.
Matrix product(const Factor& left, const Factor& right);

/// left += right, entry by entry.
void add(Matrix& left, const Matrix& right);

/// Every entry of every matrix times `factor`.
void multiply(std::vector<Matrix>& matrices, float factor);

/// Who multiplies: "OpenBLAS (...)" or "plain loops". Calling it first, from one thread, loads the
/// library; multiply() does so too.
const std::string& multiplier();

}  // namespace bubblescope
