// Matrices that kernels read and write in tests.
#pragma once

#include <cstdint>

#include "exec/training/matrix.h"

namespace bubblescope::tests {

/// Numbers from -2 to 2, the same for the same seed.
exec::Matrix draw_matrix(std::int32_t rows, std::int32_t columns, std::uint64_t seed);

/// A matrix of NaN, so that entries that are not written show.
exec::Matrix unwritten(std::int32_t rows, std::int32_t columns);

}  // namespace bubblescope::tests
