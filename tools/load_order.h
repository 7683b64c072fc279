// Schedules of which only the order counts.
#pragma once

#include <string>

#include "tools/options.h"

namespace bubblescope {

/// load_schedule() for a command that gives ops no durations from its options. There, a timeline is
/// refused unless the options name the costs, because its own times would be dropped silently; here
/// it is as good as a schedule.
Schedule load_order(const std::string& name_or_path, const PredictOptions& options);

/// Throws Error, with the commands that may be meant, where the options leave the costs of this
/// timeline's ops at their default.
void expect_named_costs(const std::string& timeline_path, const PredictOptions& options);

}  // namespace bubblescope
