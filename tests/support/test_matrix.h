// Matrices that kernels read and write in tests.
#pragma once

#include <cstdint>

#include "exec/training/matrix.h"

namespace bubblescope {

/// Numbers from -2 to 2, the same for the same seed.
Matrix draw(std::int32_t rows, std::int32_t columns, std::uint64_t seed);

/// A matrix of NaN, so that entries that are not written show.
Matrix unwritten(std::int32_t rows, std::int32_t columns);

}  // namespace bubblescope
