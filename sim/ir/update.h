// The end of a step: options for gradient reduction and the optimizer. lower_update.h says what
// each of them adds to a Program.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ir/named.h"

namespace bubblescope::inline sim {

/// The condition for an optimizer step, besides its own stage's gradients.
enum class OptimizerMode : std::uint8_t {
  kNone,            ///< the step ends with its gradients
  kLocal,           ///< nothing else
  kBarrier,         ///< the gradient norm, summed over all ranks
  kPostValidation,  ///< the partial norm, summed by the ranks before its own
};

inline constexpr std::array<Named<OptimizerMode>, 4> kOptimizerModes{{
    {OptimizerMode::kNone, "none"},
    {OptimizerMode::kLocal, "local"},
    {OptimizerMode::kBarrier, "barrier"},
    {OptimizerMode::kPostValidation, "post-validation"},
}};

/// When a stage's gradients are reduced over all ranks that hold its weights: data-parallel ranks
/// and replicas in the same pipeline.
enum class GradReduction : std::uint8_t {
  kNone,     ///< never, except between replicas in this pipeline if there is an optimizer step
  kOverlap,  ///< as soon as they are complete, beside compute ops
  kSerial,   ///< when the rank has run its last compute op
};
inline constexpr std::array<Named<GradReduction>, 3> kGradReductions{{
    {GradReduction::kNone, "none"},
    {GradReduction::kOverlap, "overlap"},
    {GradReduction::kSerial, "serial"},
}};

struct UpdateOptions {
  OptimizerMode optimizer = OptimizerMode::kNone;
  GradReduction reduction = GradReduction::kNone;
  /// Whether ranks may run their ops in any order, so that a serial reduction waits for all of them
  /// and not for the last one.
  bool in_any_order = false;

  bool any() const {
    return optimizer != OptimizerMode::kNone || reduction != GradReduction::kNone;
  }
};

}  // namespace bubblescope::inline sim
