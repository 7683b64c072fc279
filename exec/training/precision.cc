// Rounds as storing a value does.
#include "exec/training/precision.h"

#include <bit>
#include <cmath>

namespace bubblescope::exec {

float stored(float value, Precision precision) {
  if (precision == Precision::kFloat32 || std::isnan(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  return std::bit_cast<float>(rounded & 0xffff0000U);
}

Matrix stored(Matrix matrix, Precision precision) {
  if (precision == Precision::kFloat32) return matrix;
  for (float& value : matrix.values) value = stored(value, precision);
  return matrix;
}

}  // namespace bubblescope::exec
