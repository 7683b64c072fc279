// What a file holds that is given where a schedule is asked for.
#pragma once

#include <string>

#include "sim/ir/schedule.h"

namespace bubblescope {

struct ScheduleFile {
  Schedule schedule;
  bool has_times = false;  ///< it is a timeline, so every op has a duration of its own
};

/// Reads a schedule or a timeline in whichever format it is in. Throws Error.
ScheduleFile read_schedule_file(const std::string& path);

}  // namespace bubblescope
