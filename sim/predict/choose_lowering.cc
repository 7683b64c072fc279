// Chooses how a schedule is lowered.
#include "sim/predict/choose_lowering.h"

#include <variant>

#include "sim/predict/step_end.h"

namespace bubblescope::inline sim {

LowerOptions choose_lowering(const Schedule& schedule, const Config& config) {
  LowerOptions lower = config.lower;
  if (config.moves.sharding && config.moves.sharding->lookahead) lower.gathers_in_place = true;
  if (const auto* const model = std::get_if<ModelCosts>(&config.costs))
    lower.update = choose_model_update(schedule, model->end);
  lower.update.in_any_order = config.policy.has_value();
  return lower;
}

}  // namespace bubblescope::inline sim
