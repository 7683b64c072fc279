// The flags of what decides the order of a step while it runs.
#pragma once

#include <string>

#include "sim/predict/ready_priority.h"
#include "tools/flags/command_flags.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Returns "ready:order", "ready:backward" or "ready:path".
std::string policy_text(ReadyPriority policy);
/// --policy: whether ranks keep their order.
void add_policy_option(CommandFlags& app, PredictOptions& options);
/// Adds --arrivals and --policy.
void add_arrival_options(CommandFlags& app, PredictOptions& options);

/// Throws Error where a flag was given that is only simulated.
void expect_runnable(const PredictOptions& options);

}  // namespace bubblescope::tools
