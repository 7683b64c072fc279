// A span of time in a recording.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/ir/units.h"

namespace bubblescope::traces {

struct TimeSpan {
  Nanos start = 0;
  Nanos end = 0;

  Nanos length() const { return end - start; }
};

/// Widens a span until it contains the other; each is anything that has a start and an end.
template <class Span, class Other>
void widen(Span& span, const Other& other) {
  span.start = std::min(span.start, other.start);
  span.end = std::max(span.end, other.end);
}

/// Sorts spans by start, those with the same one in the order in which they are. Each is anything
/// that has a start.
template <class Span>
void sort_by_start(std::vector<Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& left, const Span& right) { return left.start < right.start; });
}

/// The time that spans cover together.
Nanos cover(std::vector<TimeSpan> spans);

/// Whether one of `spans`, which are by start and apart or overlap at their ends, contains `time`
/// or a time that differs from it by at most `tolerance`.
bool lies_in(const std::vector<TimeSpan>& spans, Nanos time, Nanos tolerance = 0);

/// Whether two times are at most 100 days apart, as all that belong together are.
bool lie_within_days(Nanos left, Nanos right);

}  // namespace bubblescope::traces
