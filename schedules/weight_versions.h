// Weight versions: which weights the ops of asynchronous schedules read and write.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope::schedules {

/// Every `microbatches` micro-batches end with an update. The u-th group (from 0) writes version
/// u+1 and reads version u - delay, forward and backward.
struct UpdateRule {
  std::int32_t microbatches = 1;
  std::int32_t delay = 0;
};

/// The versions of a rank's ops, whose backwards must be in micro-batch order.
std::vector<WeightUse> assign_weight_versions(const RankOrder& ops, UpdateRule rule);

}  // namespace bubblescope::schedules
