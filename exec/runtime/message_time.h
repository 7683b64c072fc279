// The measured time of a message alone.
#pragma once

#include "sim/ir/units.h"

namespace bubblescope::exec {

/// The time of a message of this size from a rank to its neighbour while nothing else runs.
struct MessageTime {
  Bytes bytes = 0;
  Nanos nanos = 0;
};

}  // namespace bubblescope::exec
