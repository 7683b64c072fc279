// The ends of a Timeline.
#include "sim/ir/timeline.h"

#include <algorithm>

namespace bubblescope {

StepBounds step_bounds(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  StepBounds bounds{timeline.start[0], timeline.end[0]};
  for (const Nanos start : timeline.start) bounds.start = std::min(bounds.start, start);
  for (const Nanos end : timeline.end) bounds.end = std::max(bounds.end, end);
  return bounds;
}

Nanos makespan_of(const Timeline& timeline) {
  const StepBounds bounds = step_bounds(timeline);
  return bounds.end - bounds.start;
}

}  // namespace bubblescope
