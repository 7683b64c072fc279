// The proof: what a schedule trained against what a single rank trains.
#pragma once

#include <string>

#include "exec/training/training.h"

namespace bubblescope {

/// Differences are taken relative to the largest entry of a matrix: other orders of adding
/// micro-batches round differently, by about 1e-7 of it; one that is lost makes 1 / microbatches.
inline constexpr double kProofTolerance = 1e-4;
/// The same for numbers that are stored with 8 bits after the point.
inline constexpr double kBfloat16Tolerance = 2e-2;

struct Proof {
  bool matches = false;  ///< every difference is within the tolerance
  bool exact = false;    ///< there is no difference, bit for bit
  double worst = 0;      ///< the largest relative difference
  std::string where;     ///< of what: "gradient of qkv, stage 2"; empty where exact
};

/// Compares losses of all steps, gradients of the last one and the final weights.
Proof prove(const TrainingResult& trained, const TrainingResult& reference,
            double tolerance = kProofTolerance);

/// "losses, gradients and weights equal the serial reference, bit for bit"
std::string to_string(const Proof& proof);

}  // namespace bubblescope
