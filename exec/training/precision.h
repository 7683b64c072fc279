// The precision in which training stores values. Sums are computed in float32 in both precisions,
// and master weights and weight gradients are always float32.
#pragma once

#include <cstdint>

#include "exec/training/matrix.h"

namespace bubblescope::exec {

enum class Precision : std::uint8_t {
  kFloat32,
  kBfloat16,  ///< the upper half of a float32
};

/// Rounds to the nearest stored value, ties to even; NaN stays NaN.
float stored(float value, Precision precision);
Matrix stored(Matrix matrix, Precision precision);

}  // namespace bubblescope::exec
