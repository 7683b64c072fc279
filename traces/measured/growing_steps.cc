// Compares the last steps with all before them.
#include "traces/measured/growing_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sim/ir/quantile.h"
#include "traces/measured/warmup_steps.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

/// Three of eight are in this order by chance once in 8 * 7 * 6 recordings.
constexpr std::size_t kMinGrowingSteps = 3;
constexpr std::size_t kMinSteps = 8;
constexpr double kMinGrowth = 1.05;

/// The number of steps at the end of which each is longer than all before it.
std::size_t count_growing(const std::vector<Nanos>& makespans) {
  std::size_t growing = 0;
  Nanos longest = -1;
  for (const Nanos makespan : makespans) {
    growing = makespan > longest ? growing + 1 : 0;
    longest = std::max(longest, makespan);
  }
  return growing;
}

}  // namespace

std::optional<std::string> describe_growing_steps(const std::vector<MeasuredStep>& steps) {
  std::vector<Nanos> all;
  std::int64_t last = 0;
  for (const auto& [number, makespan] : collect_makespans(steps)) {
    all.push_back(makespan);
    last = number;
  }
  if (all.size() < kMinSteps) return {};
  const std::size_t growing = std::min(count_growing(all), all.size() / 2);
  const auto usual = static_cast<double>(quantile(all, 50));
  const auto longest = static_cast<double>(all.back());
  if (growing < kMinGrowingSteps || longest <= kMinGrowth * usual) return {};
  return fmt::format(
      "the last {} steps grow from one to the next: step {} takes {}, {:.2f} times the median "
      "step; means over all steps hide it",
      growing, last, format_time(all.back()), longest / usual);
}

}  // namespace bubblescope::traces
