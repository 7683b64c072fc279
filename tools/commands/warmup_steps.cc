// Compares the makespans of steps, and the times at which they begin.
#include "tools/commands/warmup_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>

#include "sim/ir/quantile.h"
#include "tools/commands/incomplete_steps.h"

namespace bubblescope::tools {

namespace {

constexpr double kWarmup = 1.5;

/// The makespan of the slowest replica, by step.
std::map<std::int64_t, Nanos> collect_makespans(const std::vector<traces::MeasuredStep>& steps) {
  std::map<std::int64_t, Nanos> longest;
  for (const traces::MeasuredStep& step : steps) {
    Nanos& makespan = longest[step.number];
    makespan = std::max(makespan, compute_makespan(step.timeline));
  }
  return longest;
}

}  // namespace

traces::AssembledSteps separate_warmup_steps(traces::AssembledSteps read) {
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
  read.remarks.left_out.push_back(fmt::format(
      "left out: step{} {}, the first, over {} times as long as the median step: a warm-up",
      warmup.size() > 1 ? "s" : "", fmt::join(warmup, ", "), kWarmup));
  return read;
}

std::optional<traces::BetweenSteps> measure_between_steps(
    const std::vector<traces::MeasuredStep>& steps) {
  using Extent = std::pair<Nanos, Nanos>;
  std::map<std::int64_t, Extent> extents;
  for (const traces::MeasuredStep& step : steps) {
    if (!step.begin) return {};
    const Extent own{*step.begin, *step.begin + compute_makespan(step.timeline)};
    Extent& extent = extents.emplace(step.number, own).first->second;
    extent = {std::min(extent.first, own.first), std::max(extent.second, own.second)};
  }
  std::vector<Nanos> times;
  traces::BetweenSteps between;
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

}  // namespace bubblescope::tools
