// Looks up steps by time.
#include "traces/measured/step_marks.h"

#include <algorithm>
#include <iterator>

namespace bubblescope::traces {

StepMarks::StepMarks(const ChromeEvents& events) {
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity == Activity::kStep) marks_.push_back(event);
  std::sort(marks_.begin(), marks_.end(),
            [](const ProfiledEvent& left, const ProfiledEvent& right) {
              return left.start < right.start;
            });
}

std::optional<std::int64_t> StepMarks::step_at(Nanos time) const {
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), time,
                       [](Nanos wanted, const ProfiledEvent& mark) { return wanted < mark.start; });
  if (next == marks_.begin() || time > std::prev(next)->end) return {};
  return std::prev(next)->number;
}

}  // namespace bubblescope::traces
