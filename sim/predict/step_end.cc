// Completes the choices that are given.
#include "sim/predict/step_end.h"

namespace bubblescope::inline sim {

UpdateOptions choose_model_update(const Schedule& schedule, const StepEnd& end) {
  UpdateOptions usual;
  if (!schedule.forward_only)
    usual = {schedule.weights.empty() ? OptimizerMode::kBarrier : OptimizerMode::kLocal,
             GradReduction::kOverlap};
  return {end.optimizer.value_or(usual.optimizer), end.reduction.value_or(usual.reduction)};
}

}  // namespace bubblescope::inline sim
