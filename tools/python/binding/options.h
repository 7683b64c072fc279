// Keyword arguments as inputs: every keyword of a prediction is the flag of that name.
#pragma once

#include "tools/command.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// Parses the words of `simulate` without its schedule, such as "--pp=4", and reads the files that
/// they name. Throws Error.
PredictInputs parse_prediction(const Arguments& words);

}  // namespace bubblescope::tools
