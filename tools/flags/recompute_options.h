// Words for what is recomputed.
#pragma once

#include <string>

#include "sim/ir/schedule.h"
#include "sim/model/recompute_modules.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// Parses "none", "selective", "full". Throws Error for anything else.
Recompute parse_recompute(const std::string& text);

/// Adds --recompute-modules, which names modules of a layer with commas between them.
void add_modules_option(CommandFlags& app, RecomputeModules& modules);

}  // namespace bubblescope::tools
