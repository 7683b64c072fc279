// Looks up steps by time.
#include "traces/measured/step_marks.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "traces/measured/time_span.h"

namespace bubblescope::traces {

namespace {

/// The marks of the chosen threads, by start.
template <class IsChosen>
std::vector<ProfiledEvent> find_marks(const ChromeEvents& events, IsChosen is_chosen) {
  std::vector<ProfiledEvent> marks;
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity == Activity::kStep && is_chosen(events.threads[event.thread]))
      marks.push_back(event);
  sort_by_start(marks);
  return marks;
}

}  // namespace

StepMarks::StepMarks(const ChromeEvents& events)
    : marks_(find_marks(events, [](const ChromeThread&) { return true; })) {}

StepMarks::StepMarks(const ChromeEvents& events, const std::string& process)
    : marks_(find_marks(events,
                        [&](const ChromeThread& thread) { return thread.process == process; })) {}

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

ObservedTrace use_step_marks(ObservedTrace trace) {
  if (!trace.source.may_mark_steps) return trace;
  const bool all_marked =
      std::all_of(trace.ops.begin(), trace.ops.end(),
                  [](const ObservedOp& observed) { return observed.mark.has_value(); });
  if (!all_marked) {
    std::erase_if(trace.activities,
                  [](const ObservedActivity& activity) { return activity.is_whole_step; });
    return trace;
  }
  for (ObservedOp& observed : trace.ops) {
    observed.step = *observed.mark;
    observed.has_step = true;
    observed.step_is_counted = false;
  }
  return trace;
}

}  // namespace bubblescope::traces
