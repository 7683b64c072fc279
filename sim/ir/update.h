// How a step ends: what becomes of the gradients once they are made. Options only; lower_update.h
// says what each of them adds to a Program.
#pragma once

#include <array>
#include <cstdint>

#include "sim/ir/named.h"

namespace bubblescope {

/// What an optimizer step waits for, beside its own stage's gradients.
enum class OptimizerMode : std::uint8_t {
  kNone,            ///< the step ends with its gradients
  kLocal,           ///< for nothing else
  kBarrier,         ///< for the gradient norm, summed over all ranks
  kPostValidation,  ///< for the norm as summed so far, by the ranks before its own
};

inline constexpr std::array<Named<OptimizerMode>, 4> kOptimizerModes{{
    {OptimizerMode::kNone, "none"},
    {OptimizerMode::kLocal, "local"},
    {OptimizerMode::kBarrier, "barrier"},
    {OptimizerMode::kPostValidation, "post-validation"},
}};

/// When a stage's gradients are reduced over the ranks that hold its weights too: data-parallel
/// ones beside this pipeline, and those of its own replicas.
enum class GradReduction : std::uint8_t {
  kNone,     ///< never; replicas in this very pipeline still are, where an optimizer step follows
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

  bool any() const {
    return optimizer != OptimizerMode::kNone || reduction != GradReduction::kNone;
  }
};

}  // namespace bubblescope
