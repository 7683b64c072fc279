// Looks for a time in spans.
#include "traces/measured/time_span.h"

#include <algorithm>
#include <iterator>

namespace bubblescope::traces {

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
