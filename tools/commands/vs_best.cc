// Finds the best steps once, and compares the others with them.
#include "tools/commands/vs_best.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace bubblescope::tools {

namespace {

using BestSteps = std::array<const RankedStep*, 2>;  ///< without and with backwards

double time_per_microbatch(const RankedStep& step) {
  return static_cast<double>(step.step) / static_cast<double>(step.microbatches);
}

/// Whether a step is a better choice than the best one before it.
bool is_better(const RankedStep& step, const RankedStep& best) {
  if (step.over_limits != best.over_limits) return best.over_limits;
  return time_per_microbatch(step) < time_per_microbatch(best);
}

BestSteps find_best_steps(const std::vector<RankedStep>& steps) {
  BestSteps best{};
  for (const RankedStep& step : steps) {
    const RankedStep*& best_so_far = best.at(step.trains ? 1 : 0);
    if (best_so_far == nullptr || is_better(step, *best_so_far)) best_so_far = &step;
  }
  return best;
}

double excess_over(const RankedStep& step, const RankedStep& best) {
  if (best.step == 0 && step.step > 0) return std::numeric_limits<double>::quiet_NaN();
  if (step.microbatches == best.microbatches) return fraction(step.step - best.step, best.step);
  return time_per_microbatch(step) / time_per_microbatch(best) - 1;
}

}  // namespace

std::vector<double> find_excesses(const std::vector<RankedStep>& steps) {
  const BestSteps best = find_best_steps(steps);
  std::vector<double> excesses;
  for (const RankedStep& step : steps)
    excesses.push_back(excess_over(step, *best.at(step.trains ? 1 : 0)));
  return excesses;
}

bool lack_fitting_step(const std::vector<RankedStep>& steps) {
  const BestSteps best = find_best_steps(steps);
  return std::any_of(best.begin(), best.end(),
                     [](const RankedStep* step) { return step != nullptr && step->over_limits; });
}

std::string excess_csv(double excess) {
  return std::isnan(excess) ? "" : fmt::format("{}", excess);
}

}  // namespace bubblescope::tools
