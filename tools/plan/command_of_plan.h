// The command that simulates a plan: its flags, put together.
#pragma once

#include <string>

#include "sim/analysis/plan.h"
#include "tools/plan/plan_options.h"

namespace bubblescope::tools {

/// Returns the command line: "bubblescope simulate zb-h1 --f 10 --pp 4 -m 16". `has_experts` is a
/// property of the model, if there is one.
std::string simulate_command(const PlanQuestion& question, const Plan& plan, bool has_experts);

}  // namespace bubblescope::tools
