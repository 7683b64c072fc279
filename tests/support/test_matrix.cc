// The same numbers on every machine.
#include "tests/support/test_matrix.h"

#include <algorithm>
#include <cmath>
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

}  // namespace bubblescope::tests
