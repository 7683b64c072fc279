// Assumptions that a step does not depend on: those of tensor ranks where there is one, and so on.
#pragma once

#include "sim/ir/schedule.h"
#include "sim/model/layer_cost.h"

namespace bubblescope::inline sim {

/// Whether the step has other times or needs other memory than with the usual value. Ops as parts
/// are taken to depend on all assumptions.
bool changes_step(const ReplacedAssumption& replaced, const ModelOnDevices& on,
                  const Schedule& schedule);

}  // namespace bubblescope::inline sim
