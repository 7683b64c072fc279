// The proof: what a schedule trained against what a single rank trains.
#pragma once

#include <string>

#include "exec/training/training.h"

namespace bubblescope {

/// How far two trainings may be apart. Other orders of adding round differently: by about 1e-7 of a
/// matrix's largest entry in float32, where a micro-batch that is lost makes 1 / microbatches. In
/// bfloat16 each rounding is one part in 256, and the next ones depend on it: single entries say
/// little there, all that a stage has of them together does.
struct ProofTolerance {
  double entry = 0;     ///< largest difference in a matrix, relative to its largest entry
  double together = 0;  ///< root mean square difference of a stage's gradients, relative to theirs
  double change = 0;    ///< of its weights, relative to what all updates changed
};
inline constexpr ProofTolerance kFloat32Tolerance{1e-4, 1e-4, 1e-2};
inline constexpr ProofTolerance kBfloat16Tolerance{1e-1, 2e-2, 1e-1};

struct Proof {
  bool matches = false;  ///< every difference is within the tolerance
  bool exact = false;    ///< there is no difference, bit for bit
  double worst = 0;      ///< the largest relative difference, of those the closest to a tolerance
  std::string where;     ///< of what: "gradient of qkv, stage 2"; empty where exact
};

/// Compares losses of all steps, gradients of the last one, the final weights and what updates
/// changed in them, within the tolerance of the reference's precision.
Proof prove(const TrainingResult& trained, const TrainingResult& reference);

/// "losses, gradients and weights equal the serial reference, bit for bit"
std::string to_string(const Proof& proof);

}  // namespace bubblescope
