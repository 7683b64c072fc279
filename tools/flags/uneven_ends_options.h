// Flags of Megatron-LM's rule for the layers of ranks.
#pragma once

#include "sim/model/megatron_counts.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Adds --first-layers, --last-layers, --account-for-embedding and --account-for-loss.
void add_uneven_ends_options(CommandFlags& app, UnevenEnds& ends);

/// Throws Error where both numbers of layers and what counts as one are given.
void expect_one_rule(const UnevenEnds& ends);

}  // namespace bubblescope::tools
