// Reads a file that is given in place of a schedule's name.
#pragma once

#include <string>

#include "sim/ir/schedule.h"

namespace bubblescope::traces {

struct ScheduleFile {
  Schedule schedule;
  bool has_times = false;  ///< it is a timeline: every op has a duration of its own
};

/// Reads a schedule or a timeline in whichever format it is in. Throws Error.
ScheduleFile read_schedule_file(const std::string& path);

}  // namespace bubblescope::traces
