// Chooses how a schedule is lowered.
#include "sim/predict/config.h"

namespace bubblescope::inline sim {

LowerOptions choose_lowering(const Schedule& schedule, const Config& config) {
  LowerOptions lower = config.lower;
  if (config.moves.sharding && config.moves.sharding->lookahead) lower.gathers_in_place = true;
  const auto* const model = std::get_if<ModelCosts>(&config.costs);
  if (model != nullptr) lower.update = choose_model_update(schedule, model->end);
  return lower;
}

}  // namespace bubblescope::inline sim
