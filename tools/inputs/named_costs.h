// Requires explicit costs where the defaults would mislead.
#pragma once

#include <string>

#include "sim/ir/schedule.h"
#include "tools/flags/options.h"

namespace bubblescope::tools {

/// Throws Error, with the commands that may be meant, where the options leave the forwards or the
/// backwards of this timeline at their default. `schedule` is the order of its ops.
void expect_named_costs(const std::string& timeline_path, const Schedule& schedule,
                        const PredictOptions& options);

}  // namespace bubblescope::tools
