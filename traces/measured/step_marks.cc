// Looks up steps by time.
#include "traces/measured/step_marks.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace bubblescope::traces {

StepMarks::StepMarks(const ChromeEvents& events) {
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity == Activity::kStep) marks_.push_back(event);
  std::sort(marks_.begin(), marks_.end(),
            [](const ProfiledEvent& left, const ProfiledEvent& right) {
              return left.start < right.start;
            });
}

const ProfiledEvent* StepMarks::last_before(Nanos time) const {
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), time,
                       [](Nanos wanted, const ProfiledEvent& mark) { return wanted < mark.start; });
  return next == marks_.begin() ? nullptr : &*std::prev(next);
}

std::optional<Nanos> StepMarks::start_before(Nanos time) const {
  const ProfiledEvent* const mark = last_before(time);
  return mark == nullptr ? std::nullopt : std::optional(mark->start);
}

std::optional<std::int64_t> StepMarks::step_at(Nanos time) const {
  const ProfiledEvent* const mark = last_before(time);
  return mark == nullptr || time > mark->end ? std::nullopt : std::optional(mark->number);
}

void use_step_marks(ObservedTrace& trace) {
  if (trace.source != "nsys") return;
  const bool all_marked =
      std::all_of(trace.ops.begin(), trace.ops.end(),
                  [](const ObservedOp& observed) { return observed.mark.has_value(); });
  if (!all_marked) {
    std::erase_if(trace.works, [](const ObservedWork& work) { return work.is_whole_step; });
    return;
  }
  for (ObservedOp& observed : trace.ops) {
    observed.step = *observed.mark;
    observed.has_step = true;
  }
}

}  // namespace bubblescope::traces
