// Notes on defaults that are not those of the framework whose flags are given.
#pragma once

#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Says on stderr that a batch goes through one pipeline where no number of replicas was given; and
/// where Megatron-LM's flags are given, what is assumed without being told that Megatron-LM does
/// only if told, and that it divides layers otherwise.
void note_unstated_defaults(const CommandFlags& app, const PredictOptions& options);

}  // namespace bubblescope::tools
