// Names what a plan was asked for and does not have, and the reasons.
#pragma once

#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "tools/plan/model_plan.h"
#include "tools/plan/plan_options.h"
#include "traces/plans/plan_table.h"

namespace bubblescope::tools {

/// Returns a refusal for each schedule that --profile refuses, and for each that --schedules names
/// and that has neither a plan nor a refusal in the table. Schedules of "all" and "searched" may be
/// missing without one.
std::vector<traces::Refusal> find_left_out(const PlanQuestion& question,
                                           const std::vector<Configuration>& configurations,
                                           const traces::PlanTable& table);

/// Returns "--tp 72: no --tp 72 x --cp x --pp divides 128 devices" for each number of --pp, --vpp,
/// or of a model's axes that was listed and that no configuration could use. `planner` is
/// nullptr without a model; `listed` are the axes as they were given.
std::vector<std::string> find_unused_numbers(const ModelAxes& listed, const ModelPlanner* planner,
                                             const std::vector<Configuration>& configurations,
                                             const std::vector<Outcome>& outcomes);

}  // namespace bubblescope::tools
