// Tells steps apart by their ranks.
#include "traces/measured/step_extents.h"

namespace bubblescope::traces {

StepExtents find_step_extents(const ObservedTrace& trace) {
  return find_extents(trace.ops, [](const ObservedOp& observed) {
    return std::optional(std::pair(observed.recorder, observed.step));
  });
}

std::optional<TimeSpan> find_extent(const MeasuredStep& step) {
  if (!step.begin) return {};
  return TimeSpan{*step.begin, *step.begin + compute_makespan(step.timeline)};
}

}  // namespace bubblescope::traces
