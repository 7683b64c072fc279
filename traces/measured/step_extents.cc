// Tells steps apart by their ranks.
#include "traces/measured/step_extents.h"

namespace bubblescope::traces {

StepExtents find_step_extents(const ObservedTrace& trace) {
  return find_extents(trace.ops, [](const ObservedOp& observed) {
    return std::optional(std::pair(observed.recorder, observed.step));
  });
}

}  // namespace bubblescope::traces
