// Finds the bounds of a Timeline.
#include "sim/ir/timeline.h"

#include <algorithm>
#include <array>
#include <functional>

namespace bubblescope::inline sim {

namespace {

/// The first of all times by `is_before`. Four searches run side by side, because each comparison
/// depends on the previous one.
template <class Before>
Nanos first_of(const std::vector<Nanos>& times, const Before& is_before) {
  constexpr std::size_t kWidth = 4;
  std::array<Nanos, kWidth> first;
  first.fill(times.front());
  std::size_t at = 0;
  for (; at + kWidth <= times.size(); at += kWidth)
    for (std::size_t beside = 0; beside < kWidth; ++beside)
      if (is_before(times[at + beside], first[beside])) first[beside] = times[at + beside];
  for (; at < times.size(); ++at)
    if (is_before(times[at], first[0])) first[0] = times[at];
  return *std::min_element(first.begin(), first.end(), is_before);
}

}  // namespace

StepBounds find_step_bounds(const Timeline& timeline) {
  if (timeline.start.empty()) return {};
  return {first_of(timeline.start, std::less<>()), first_of(timeline.end, std::greater<>())};
}

Nanos compute_makespan(const Timeline& timeline) {
  const StepBounds bounds = find_step_bounds(timeline);
  return bounds.end - bounds.start;
}

}  // namespace bubblescope::inline sim
