// Notes on defaults that are not those of the framework whose flags are given.
#pragma once

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Says on stderr that a batch goes through one pipeline where no number of replicas was given.
/// Where Megatron-LM's flags are given, also names the features that are on here by default and off
/// there, and says that layers are divided by their times.
void note_unstated_defaults(const CommandFlags& app, const PredictOptions& options);

}  // namespace bubblescope::tools
