// Compares the makespans of steps.
#include "traces/measured/warmup_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "sim/ir/quantile.h"
#include "traces/measured/incomplete_steps.h"
#include "traces/measured/number_ranges.h"

namespace bubblescope::traces {

namespace {

constexpr double kWarmup = 1.5;

}  // namespace

std::map<std::int64_t, Nanos> collect_makespans(const std::vector<MeasuredStep>& steps) {
  std::map<std::int64_t, Nanos> longest;
  for (const MeasuredStep& step : steps) {
    Nanos& makespan = longest[step.number];
    makespan = std::max(makespan, compute_makespan(step.timeline));
  }
  return longest;
}

AssembledSteps separate_warmup_steps(AssembledSteps read) {
  const std::map<std::int64_t, Nanos> makespans = collect_makespans(read.steps);
  std::vector<Nanos> all;
  for (const auto& [_, makespan] : makespans) all.push_back(makespan);
  const auto usual = static_cast<double>(quantile(all, 50));
  std::vector<std::int64_t> warmup;
  for (const auto& [number, makespan] : makespans) {
    if (static_cast<double>(makespan) <= kWarmup * usual) break;
    warmup.push_back(number);
  }
  if (warmup.empty() || 4 * warmup.size() > makespans.size()) return read;
  read = without_steps(std::move(read), warmup);
  read.remarks.left_out.push_back(
      fmt::format("left out: {}, the first, over {} times as long as the median step: a warm-up",
                  list_steps(warmup), kWarmup));
  return read;
}

}  // namespace bubblescope::traces
