// Compares the end of the last marked step with the last event.
#include "traces/measured/early_end.h"

#include <fmt/format.h>

#include <algorithm>

namespace bubblescope::traces {

std::optional<std::string> describe_early_end(const ChromeEvents& events, const StepMarks& marks,
                                              const std::vector<ObservedOp>& ops) {
  if (marks.marks().empty()) return {};
  const ProfiledEvent& step = marks.marks().back();
  Nanos end = step.start;
  for (const ProfiledEvent& event : events.profiled)
    if (event.activity != Activity::kStep) end = std::max(end, event.end);
  for (const ObservedOp& op : ops) end = std::max(end, op.end);
  if (step.end - end <= (step.end - step.start) / 2) return {};
  return fmt::format(
      "nothing is recorded in the last {} of step {}, more than half of it: the recording may have "
      "ended before the step did",
      to_text(step.end - end), step.number);
}

}  // namespace bubblescope::traces
