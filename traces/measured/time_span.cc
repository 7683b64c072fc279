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

}  // namespace bubblescope::traces
