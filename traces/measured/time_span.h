// A span of time in a recording.
#pragma once

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct TimeSpan {
  Nanos start = 0;
  Nanos end = 0;
};

}  // namespace bubblescope::traces
