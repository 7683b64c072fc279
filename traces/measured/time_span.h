// A span of time in a recording.
#pragma once

#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct TimeSpan {
  Nanos start = 0;
  Nanos end = 0;
};

/// Whether one of `spans`, which are by start and apart or overlap at their ends, contains `time`.
bool lies_in(const std::vector<TimeSpan>& spans, Nanos time);

}  // namespace bubblescope::traces
