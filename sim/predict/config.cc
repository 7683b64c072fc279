// Chooses how a schedule is lowered.
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

UpdateOptions choose_model_update(const Schedule& schedule) {
  if (schedule.forward_only) return {};
  return {schedule.weights.empty() ? OptimizerMode::kBarrier : OptimizerMode::kLocal,
          GradReduction::kOverlap};
}

LowerOptions choose_lowering(const Schedule& schedule, const Config& config) {
  LowerOptions lower = config.lower;
  if (config.moves.sharding && config.moves.sharding->lookahead) lower.gathers_in_place = true;
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model != nullptr && model->default_update) lower.update = choose_model_update(schedule);
  return lower;
}

}  // namespace bubblescope::inline sim
