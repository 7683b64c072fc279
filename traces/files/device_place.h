// Where a device ran work, and when the host launched it there.
#pragma once

#include <cstdint>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct DevicePlace {
  Nanos launched = 0;        ///< by the clock of the host, which only tells the order of launches
  std::int64_t queue = 0;    ///< of a message: the stream that its kernel runs on
  std::int64_t kernel = -1;  ///< of a message: the same for all that one kernel carries
};

}  // namespace bubblescope::traces
