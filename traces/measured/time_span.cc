// Sorts spans, and looks for times in them.
#include "traces/measured/time_span.h"

#include <algorithm>
#include <iterator>

namespace bubblescope::traces {

Nanos cover(std::vector<TimeSpan> spans) {
  sort_by_start(spans);
  Nanos covered = 0;
  Nanos end = spans.empty() ? 0 : spans.front().start;
  for (const TimeSpan& span : spans) {
    covered += std::max<Nanos>(0, span.end - std::max(span.start, end));
    end = std::max(end, span.end);
  }
  return covered;
}

bool lies_in(const std::vector<TimeSpan>& spans, Nanos time, Nanos tolerance) {
  const auto after =
      std::upper_bound(spans.begin(), spans.end(), time + tolerance,
                       [](Nanos wanted, const TimeSpan& span) { return wanted < span.start; });
  return after != spans.begin() && std::prev(after)->end >= time - tolerance;
}

bool lie_within_days(Nanos left, Nanos right) {
  constexpr Nanos kMaxApart = Nanos{100} * 24 * 3600 * 1'000'000'000;
  Nanos apart = 0;
  return !__builtin_sub_overflow(left, right, &apart) && apart <= kMaxApart && apart >= -kMaxApart;
}

}  // namespace bubblescope::traces
