// Computes quantiles and compares distributions of step times.
#include "sim/analysis/step_times.h"

#include <algorithm>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

StepTimes summarize(std::vector<Nanos> makespans) {
  StepTimes times;
  if (makespans.empty()) return times;
  times.p5 = quantile(makespans, 5);
  times.p50 = quantile(makespans, 50);
  times.p95 = quantile(makespans, 95);
  std::vector<Nanos> sorted = makespans;
  std::sort(sorted.begin(), sorted.end());
  times.makespans = std::move(makespans);
  times.shortest = sorted.front();
  times.longest = sorted.back();
  for (const Nanos makespan : sorted) times.mean += static_cast<double>(makespan);
  times.mean /= static_cast<double>(sorted.size());
  return times;
}

double compute_win_probability(std::span<const Nanos> first, std::span<const Nanos> second) {
  const std::size_t count = std::min(first.size(), second.size());
  std::size_t halves = 0;
  for (std::size_t at = 0; at < count; ++at)
    halves += first[at] < second[at] ? 2 : first[at] == second[at] ? 1 : 0;
  return count == 0 ? 0 : static_cast<double>(halves) / static_cast<double>(2 * count);
}

}  // namespace bubblescope::inline sim
