// Verification: compares what a schedule trained with what a single rank trains.
#pragma once

#include <functional>
#include <string>

#include "exec/training/training.h"

namespace bubblescope::exec {

/// Tolerances between two trainings. Another order of additions rounds differently: in float32 by
/// about 1e-7 of a matrix's largest entry, while a lost micro-batch makes a difference of 1 /
/// microbatches. In bfloat16 each rounding is one part in 256 and affects all that follow, so
/// single entries say little there, and all entries of a stage together are compared.
struct VerificationTolerance {
  double entry = 0;   ///< largest difference of an entry, relative to the matrix's largest entry
  double rms = 0;     ///< root mean square difference of a stage's gradients, relative
  double change = 0;  ///< the same of a stage's weights, relative to how far updates moved them

  /// Returns the tolerance after so many steps, in which rounding differences accumulate.
  VerificationTolerance after(std::size_t steps) const;
};
inline constexpr VerificationTolerance kFloat32Tolerance{1e-4, 1e-4, 1e-2};
inline constexpr VerificationTolerance kBfloat16Tolerance{1e-1, 2e-2, 1e-1};

struct Verification {
  bool matches = false;       ///< all differences are within the tolerance
  bool exact = false;         ///< all values are equal, bit for bit
  double worst = 0;           ///< the relative difference that is closest to its tolerance
  double share = 0;           ///< of its tolerance
  std::string where;          ///< the worst place: "gradient of qkv, stage 2"; empty if exact
  double rounding = 0;        ///< the difference that training made of one rounding; 0: not needed
  bool is_explained = false;  ///< training makes as much of roundings
};

/// Compares the losses of all steps, the gradients of the last step, the final weights and their
/// changes, with the tolerance for the reference's precision.
Verification verify(const TrainingResult& trained, const TrainingResult& reference);

/// The same for float32 after many steps. Training amplifies roundings, in some models tenfold
/// every ten steps, so differences beyond the tolerance are weighed against those that training
/// makes of first weights that are one rounding off: `train_disturbed` is called if they are
/// needed.
Verification verify(const TrainingResult& trained, const TrainingResult& reference,
                    const std::function<TrainingResult()>& train_disturbed);

/// Returns a text such as "losses, gradients and weights equal the serial reference, bit for bit".
std::string to_string(const Verification& verification);

}  // namespace bubblescope::exec
