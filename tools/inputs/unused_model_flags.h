// Warns about flags of a model that a step has no use for.
#pragma once

#include <span>

#include "tools/inputs/unused_flags.h"

namespace bubblescope::tools {

/// Reports on stderr each flag of a model that changed nothing in any of the steps, and why:
/// "bubblescope: --etp changes nothing: the model has no experts". The inputs have a model.
void warn_of_unused_model_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps);

}  // namespace bubblescope::tools
