// Why a schedule cannot be built, for those who would rather try another than be told by an Error.
#pragma once

#include <string>
#include <vector>

#include "sim/model/schedule_def.h"

namespace bubblescope {

/// Each reason in one sentence with the remedy; empty: build_schedule() succeeds. The request's
/// chunks must be those that the schedule implies, where it implies some.
std::vector<std::string> refuse_schedule(const ScheduleDef& def, const ScheduleRequest& request);

}  // namespace bubblescope
