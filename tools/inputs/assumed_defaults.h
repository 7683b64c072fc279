// Notes on defaults of a step that are not those of Megatron-LM, whose flags were given.
#pragma once

#include <span>
#include <string>

#include "sim/analysis/report.h"
#include "sim/predict/models.h"
#include "tools/inputs/unused_flags.h"

namespace bubblescope::tools {

/// Names on stderr what the steps have and Megatron-LM has off unless given, if a flag said
/// neither. `on` is the model with the numbers of ranks of these steps.
void note_assumed_defaults(const PredictInputs& inputs, const ModelOnDevices& on,
                           std::span<const PredictedOps> steps);

/// Says which gradients Megatron-LM would have instead of those of a step, and what a rank would
/// lack then; empty where they are the same.
std::string describe_assumed_gradients(const UnstatedDefaults& unstated, const PlacedModel& placed,
                                       const BubbleReport& report);

/// The same of steps whose ranks are not known: "Megatron-LM has 32-bit gradients unless ...".
std::string describe_megatron_gradients(Gradients theirs);

}  // namespace bubblescope::tools
