// Defaults that are not those of the framework whose flags are given.
#pragma once

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Says on stderr that a batch goes through one pipeline where no number of replicas was given, and
/// where Megatron-LM's flags are given that layers are divided by their times. Sets
/// ModelOptions::unstated, of which assumed_defaults.h says what holds for a step.
void find_unstated_defaults(const CommandFlags& app, PredictOptions& options);

}  // namespace bubblescope::tools
