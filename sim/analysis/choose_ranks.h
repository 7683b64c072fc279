// The choice of the ranks that a report shows op by op.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/analysis/report.h"

namespace bubblescope::inline sim {

/// The ranks of a report whose ops the caller draws; the others' need not be complete.
using ChooseRanks = std::function<std::vector<std::int32_t>(const BubbleReport&)>;

}  // namespace bubblescope::inline sim
