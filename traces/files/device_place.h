// Where a device ran work, and when the host launched it there.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct DevicePlace {
  Nanos launched = 0;      ///< by the clock of the host, which only tells the order of launches
  std::int64_t queue = 0;  ///< of a message: the stream that its kernel runs on
  std::optional<std::int64_t> kernel = {};  ///< of a message: the same for all that one carries
};

}  // namespace bubblescope::traces
