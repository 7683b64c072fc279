// Chooses how a schedule is lowered.
#include "sim/predict/choose_lowering.h"

#include <variant>

namespace bubblescope::inline sim {

LowerOptions choose_lowering(const Schedule& schedule, const Config& config) {
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  return choose_lowering(schedule, config.lower, config.moves, config,
                         model == nullptr ? nullptr : &model->end);
}

LowerOptions choose_lowering(const Schedule& schedule, LowerOptions lower, const Moves& moves,
                             const StepConditions& conditions, const StepEnd* model_end) {
  if (moves.sharding && moves.sharding->lookahead) lower.gathers_in_place = true;
  if (model_end != nullptr) lower.update = choose_model_update(schedule, *model_end);
  lower.update.in_any_order = conditions.policy.has_value();
  return lower;
}

}  // namespace bubblescope::inline sim
