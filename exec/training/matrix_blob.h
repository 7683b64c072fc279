// Matrices as bytes, for other processes.
#pragma once

#include <vector>

#include "exec/blob.h"
#include "exec/training/matrix.h"

namespace bubblescope {

void write_matrices(BlobWriter& writer, const std::vector<Matrix>& matrices);

/// Throws Error where the bytes are too few.
std::vector<Matrix> read_matrices(BlobReader& reader);

}  // namespace bubblescope
