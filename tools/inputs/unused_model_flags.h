// Warns about flags of a model that a step has no use for.
#pragma once

#include <span>

#include "tools/inputs/unused_flags.h"

namespace bubblescope::tools {

/// Reports on stderr each flag of a model that changed nothing in any of the steps, and why:
/// "bubblescope: --etp changes nothing: the model has no experts". The inputs have a model.
void warn_of_unused_model_flags(const PredictInputs& inputs, std::span<const PredictedOps> steps);

/// Whether ops of every step reduce gradients.
bool reduce_by_themselves(std::span<const PredictedOps> steps);

/// Why reductions, and gathers of new weights, take the same time beside compute and after it; null
/// where they do not.
const char* find_same_reductions(const ModelOnDevices& on, std::span<const PredictedOps> steps);

}  // namespace bubblescope::tools
