// Compares the times at which steps end and begin.
#include "traces/reports/between_steps.h"

#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "sim/ir/quantile.h"
#include "traces/measured/step_extents.h"
#include "traces/measured/time_span.h"

namespace bubblescope::traces {

std::optional<BetweenSteps> measure_between_steps(const std::vector<MeasuredStep>& steps) {
  std::map<std::int64_t, TimeSpan> extents;
  for (const MeasuredStep& step : steps) {
    const std::optional<TimeSpan> own = find_extent(step);
    if (!own) return {};
    widen(extents.emplace(step.number, *own).first->second, *own);
  }
  std::vector<Nanos> times;
  BetweenSteps between;
  for (const auto& [number, extent] : extents) {
    const auto next = extents.find(number + 1);
    if (next == extents.end() || next->second.start < extent.end) continue;
    times.push_back(next->second.start - extent.end);
    if (times.size() > 1 && times.back() <= between.longest) continue;
    between.longest = times.back();
    between.longest_after = number;
  }
  if (times.empty()) return {};
  between.pairs = std::ssize(times);
  between.mean = std::accumulate(times.begin(), times.end(), Nanos{0}) / std::ssize(times);
  between.median = quantile(times, 50);
  return between;
}

}  // namespace bubblescope::traces
