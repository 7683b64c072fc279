// The reasons for which a schedule cannot be built, as data instead of an Error.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope::inline sim {

/// Returns the shape with the schedule's own chunks and slices, where it says 1.
Shape fill_in_implied(const ScheduleDef& def, Shape shape);

/// Each reason in one sentence with the remedy; empty: build_schedule() succeeds. The shape must be
/// filled in.
std::vector<std::string> refuse_schedule(const ScheduleDef& def, const ScheduleRequest& request);

/// Whether the schedule searches for an order under the request's caps. Others have none, or caps
/// that are part of their name.
bool searches_under_caps(const ScheduleDef& def, ScheduleRequest request);

}  // namespace bubblescope::inline sim
