// How many versions of its weights a rank keeps of a stage side by side, where training does not
// flush.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/homes.h"

namespace bubblescope {

/// What weights go through in a step.
struct VersionPlan {
  std::int32_t updates = 0;  ///< each makes the next version; 0: the weights stay until the end
  std::int32_t at_once = 1;  ///< versions from the oldest that is still read to the newest
  bool leaves_gradients = false;  ///< the last micro-batches are in the next step's first update
};

/// [home].
std::vector<VersionPlan> plan_versions(const Schedule& schedule);

}  // namespace bubblescope
