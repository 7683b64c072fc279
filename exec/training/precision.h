// How what a training makes is stored. Sums are made in float32 either way, and master weights and
// gradients of weights are always float32.
#pragma once

#include <cstdint>

#include "exec/training/matrix.h"

namespace bubblescope {

enum class Precision : std::uint8_t {
  kFloat32,
  kBfloat16,  ///< the upper half of a float32
};

/// The stored number that is nearest, ties to even; what is no number stays none.
float stored(float value, Precision precision);
Matrix stored(Matrix matrix, Precision precision);

}  // namespace bubblescope
