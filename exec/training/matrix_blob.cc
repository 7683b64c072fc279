// Matrices to and from bytes.
#include "exec/training/matrix_blob.h"

namespace bubblescope {

void write_matrices(BlobWriter& writer, const std::vector<Matrix>& matrices) {
  writer.write(matrices.size());
  for (const Matrix& matrix : matrices) {
    writer.write(matrix.rows);
    writer.write(matrix.columns);
    writer.write_all(matrix.values);
  }
}

std::vector<Matrix> read_matrices(BlobReader& reader) {
  std::vector<Matrix> matrices(reader.read<std::size_t>());
  for (Matrix& matrix : matrices) {
    matrix.rows = reader.read<std::int32_t>();
    matrix.columns = reader.read<std::int32_t>();
    matrix.values = reader.read_all<float>();
  }
  return matrices;
}

}  // namespace bubblescope
