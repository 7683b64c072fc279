// Computes the step's costs with both values.
#include "sim/predict/unused_assumptions.h"

#include "sim/model/model_step.h"
#include "sim/model/runtime.h"

namespace bubblescope::inline sim {

namespace {

bool are_alike(const ModelStep& one, const ModelStep& other) {
  return one.costs.stages == other.costs.stages && one.costs.updates == other.costs.updates &&
         one.costs.norm == other.costs.norm &&
         one.costs.message_between == other.costs.message_between &&
         one.costs.byte_time_between == other.costs.byte_time_between &&
         one.activation_bytes == other.activation_bytes && one.states == other.states &&
         one.first_layer == other.first_layer;
}

}  // namespace

bool changes_step(const ReplacedAssumption& replaced, const ModelOnDevices& on,
                  const Schedule& schedule) {
  if (on.parts || !on.rank_gpus.empty()) return true;
  ModelOnDevices usual = on;
  assume(usual, replaced.name, replaced.usual);
  return !are_alike(compute_model_step(on, schedule), compute_model_step(usual, schedule));
}

}  // namespace bubblescope::inline sim
