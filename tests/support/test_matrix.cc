// The same numbers on every machine.
#include "tests/support/test_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>

namespace bubblescope::tests {

exec::Matrix draw_matrix(std::int32_t rows, std::int32_t columns, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  exec::Matrix matrix(rows, columns);
  for (float& value : matrix.values)
    value = static_cast<float>(random() >> 40) * 0x1p-22F - 2.0F;  // from -2 to 2
  return matrix;
}

exec::Matrix unwritten(std::int32_t rows, std::int32_t columns) {
  exec::Matrix matrix(rows, columns);
  std::fill(matrix.values.begin(), matrix.values.end(), std::nanf(""));
  return matrix;
}

void expect_near(const exec::Matrix& made, const exec::Matrix& expected, float tolerance) {
  ASSERT_EQ(made.values.size(), expected.values.size());
  float largest = 1;
  for (const float value : expected.values) largest = std::max(largest, std::abs(value));
  for (std::size_t at = 0; at < made.values.size(); ++at)
    ASSERT_NEAR(made.values[at], expected.values[at], tolerance * largest) << "entry " << at;
}

}  // namespace bubblescope::tests
