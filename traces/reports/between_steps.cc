// Compares the times at which steps end and begin.
#include "traces/reports/between_steps.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::traces {

std::optional<BetweenSteps> measure_between_steps(const std::vector<MeasuredStep>& steps) {
  using Extent = std::pair<Nanos, Nanos>;
  std::map<std::int64_t, Extent> extents;
  for (const MeasuredStep& step : steps) {
    if (!step.begin) return {};
    const Extent own{*step.begin, *step.begin + compute_makespan(step.timeline)};
    Extent& extent = extents.emplace(step.number, own).first->second;
    extent = {std::min(extent.first, own.first), std::max(extent.second, own.second)};
  }
  std::vector<Nanos> times;
  BetweenSteps between;
  for (const auto& [number, extent] : extents) {
    const auto next = extents.find(number + 1);
    if (next == extents.end() || next->second.first < extent.second) continue;
    times.push_back(next->second.first - extent.second);
    if (times.size() > 1 && times.back() <= between.longest) continue;
    between.longest = times.back();
    between.longest_after = number;
  }
  if (times.empty()) return {};
  between.mean = std::accumulate(times.begin(), times.end(), Nanos{0}) / std::ssize(times);
  between.median = quantile(times, 50);
  return between;
}

}  // namespace bubblescope::traces
