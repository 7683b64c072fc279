// The format of a matrix is its size, then its entries.
#include "exec/training/matrix_blob.h"

#include <cstdint>
#include <string>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"

namespace bubblescope::exec {

namespace {

/// Rows, columns and the number of entries precede the entries.
constexpr std::size_t kHeaderBytes = 2 * sizeof(std::int32_t) + sizeof(std::size_t);

}  // namespace

void write_matrix(BlobWriter& writer, const Matrix& matrix) {
  writer.write(matrix.rows);
  writer.write(matrix.columns);
  writer.write_all(matrix.values);
}

Matrix read_matrix(BlobReader& reader) {
  Matrix matrix;
  matrix.rows = reader.read<std::int32_t>();
  matrix.columns = reader.read<std::int32_t>();
  matrix.values = reader.read_all<float>();
  const std::int64_t entries = std::int64_t{matrix.rows} * matrix.columns;
  if (matrix.rows < 0 || entries != static_cast<std::int64_t>(matrix.values.size()))
    throw Error(Fault::kMachine, "a process sent a matrix of " + std::to_string(matrix.rows) +
                                     " x " + std::to_string(matrix.columns) + " with " +
                                     counted(matrix.values.size(), "entry") + "; it was damaged");
  return matrix;
}

void write_matrices(BlobWriter& writer, const std::vector<Matrix>& matrices) {
  writer.write(matrices.size());
  for (const Matrix& matrix : matrices) write_matrix(writer, matrix);
}

std::vector<Matrix> read_matrices(BlobReader& reader) {
  std::vector<Matrix> matrices(reader.checked_count(kHeaderBytes));
  for (Matrix& matrix : matrices) matrix = read_matrix(reader);
  return matrices;
}

}  // namespace bubblescope::exec
