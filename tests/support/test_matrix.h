// Matrices that kernels read and write in tests.
#pragma once

#include <cstdint>

#include "exec/training/matrix.h"

namespace bubblescope::tests {

/// Numbers from -2 to 2, the same for the same seed.
exec::Matrix draw_matrix(std::int32_t rows, std::int32_t columns, std::uint64_t seed);

/// A matrix of NaN, so that entries that are not written show.
exec::Matrix unwritten(std::int32_t rows, std::int32_t columns);

/// Expects equal sizes, and entries that differ by at most `tolerance` of the largest expected one,
/// or of 1.
void expect_near(const exec::Matrix& made, const exec::Matrix& expected, float tolerance = 2e-6F);

}  // namespace bubblescope::tests
