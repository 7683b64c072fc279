// Matrices as bytes, to send them to other processes.
#pragma once

#include <vector>

#include "exec/runtime/blob.h"
#include "exec/training/matrix.h"

namespace bubblescope::exec {

void write_matrix(BlobWriter& writer, const Matrix& matrix);
void write_matrices(BlobWriter& writer, const std::vector<Matrix>& matrices);

// Read what was written. Throw Error for bytes that are too few or malformed.
Matrix read_matrix(BlobReader& reader);
std::vector<Matrix> read_matrices(BlobReader& reader);

}  // namespace bubblescope::exec
