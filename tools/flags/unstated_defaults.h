// Defaults that are not those of the framework whose flags are given.
#pragma once

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Says on stderr that a batch goes through one pipeline if no number of replicas is given, and
/// that layers are divided by their times if Megatron-LM's flags are given. Sets
/// ModelOptions::unstated; assumed_defaults.h says which of these matter for a step.
void find_unstated_defaults(const CommandFlags& app, PredictOptions& options);

}  // namespace bubblescope::tools
