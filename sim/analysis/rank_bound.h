// The head-body-tail bound of one machine: no order of a rank's ops is faster.
#pragma once

#include <limits>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::inline sim {

/// All ops of one kind on one stage of a rank. The compute lane runs them one at a time.
struct OpClass {
  Nanos head = std::numeric_limits<Nanos>::max();  ///< the shortest chain before one of them
  Nanos tail = std::numeric_limits<Nanos>::max();  ///< the shortest chain after one of them
  Nanos work = 0;
};

/// The maximum, over sets {head >= h, tail >= t}, of h + work + t. All work includes the `op_gap`
/// after each op; the last op's does not count.
Nanos bound_of_rank(std::vector<OpClass> classes, Nanos op_gap);

}  // namespace bubblescope::inline sim
