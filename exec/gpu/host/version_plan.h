// The number of weight versions that a rank keeps of a stage, for schedules without flushes.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/training/stage_replicas.h"

namespace bubblescope::exec {

/// The versions of a stage's weights in one step.
struct VersionPlan {
  std::int32_t updates = 0;        ///< within the step; 0: only one at its end
  std::int32_t live_versions = 1;  ///< the most versions that exist at once
  bool leaves_gradients = false;   ///< to the first update of the next step
};

/// Returns the versions of each replica of a stage.
std::vector<VersionPlan> plan_versions(const Schedule& schedule);

}  // namespace bubblescope::exec
