// Which weights the ops of asynchronous schedules use.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// Every run of `microbatches` ends with an update; the u-th of them (from 0) makes version u+1 and
/// is computed with version u - delay, forward and backward.
struct UpdateRule {
  std::int32_t microbatches = 1;
  std::int32_t delay = 0;
};

/// The versions of a rank's ops, whose backwards come in the order of their micro-batches.
std::vector<WeightUse> weights_of(const RankOrder& ops, UpdateRule rule);

}  // namespace bubblescope
