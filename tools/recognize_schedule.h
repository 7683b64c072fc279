// The name of a measured order: traces do not say which schedule ran.
#pragma once

#include <optional>
#include <string>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// The registered schedule that runs these ops in this order, by any framework's rules. Where
/// several do, because a schedule of several chunks or slices is run with one, it is the schedule
/// that is made for this shape: "gpipe", not "bfs". Schedules that search for an order are not
/// asked.
std::optional<std::string> recognize_schedule(const Schedule& schedule);

}  // namespace bubblescope
