// How many versions of its weights a stage keeps side by side, where training does not flush.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ir/schedule.h"

namespace bubblescope {

/// What a stage's weights go through in a step.
struct VersionPlan {
  std::int32_t updates = 0;  ///< each makes the next version; 0: the weights stay until the end
  std::int32_t at_once = 1;  ///< versions from the oldest that is still read to the newest
};

/// [stage]. Throws Error where the last micro-batches of a step leave gradients for the next one.
std::vector<VersionPlan> plan_versions(const Schedule& schedule);

}  // namespace bubblescope
