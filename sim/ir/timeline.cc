// The ends of a Timeline.
#include "sim/ir/timeline.h"

#include <algorithm>

namespace bubblescope {

StepBounds step_bounds(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  return {*std::min_element(timeline.start.begin(), timeline.start.end()),
          *std::max_element(timeline.end.begin(), timeline.end.end())};
}

Nanos makespan_of(const Timeline& timeline) {
  const StepBounds bounds = step_bounds(timeline);
  return bounds.end - bounds.start;
}

}  // namespace bubblescope
