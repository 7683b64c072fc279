// Matrices as bytes, for other processes.
#pragma once

#include <vector>

#include "exec/blob.h"
#include "exec/training/matrix.h"

namespace bubblescope {

void write_matrices(BlobWriter& writer, const std::vector<Matrix>& matrices);

/// What was written. Throws Error for bytes that are too few, or no matrices.
std::vector<Matrix> read_matrices(BlobReader& reader);

}  // namespace bubblescope
