// What a plan's answer does not show by itself, said on stderr: once per plan, not once per row.
#pragma once

#include <vector>

#include "sim/analysis/plan.h"
#include "tools/options.h"
#include "tools/what_if.h"

namespace bubblescope {

/// Says which numbers of --pp, -m and --vpp a plan takes because none are given.
void say_defaults(const Axes& axes);

/// What `simulate` says of a step, of all schedules that have a plan: full backwards that are not
/// what split ones take together, schedules that never flush, and costs of ops that none of their
/// steps has. `options` are those of every plan, without its shape.
void warn_of_plans(const std::vector<Plan>& ranked, const PredictOptions& options);

}  // namespace bubblescope
