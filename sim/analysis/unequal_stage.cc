// Adds up the work of every stage.
#include "sim/analysis/unequal_stage.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

/// A stage of the same rank counts as equally large from this fraction of the largest stage's work.
constexpr double kAsLarge = 0.95;
/// The smallest stage is named if it is more than this many times as far from the median as the
/// largest one.
constexpr double kFarther = 2;

double median_of(const std::map<std::int32_t, double>& work) {
  std::vector<double> times;
  for (const auto& [_, time] : work) times.push_back(time);
  return quantile(std::move(times), 50);
}

}  // namespace

UnequalStage find_unequal_stage(std::span<const ReplicatedStep> steps,
                                std::span<const Counterfactual> counterfactuals) {
  std::map<std::int32_t, double> work;
  std::map<std::int32_t, std::int32_t> rank_of;
  for (std::size_t at = 0; at < steps.size(); ++at) {
    const ReplicatedStep& step = steps[at];
    const std::vector<Durations> durations = apply_counterfactuals(steps, at, counterfactuals);
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        if (step[replica].is_on_side_stage(one.op)) return;
        work[one.op.stage] += static_cast<double>(durations[replica][id]);
        rank_of[one.op.stage] = one.rank;
      });
  }
  const auto less = [](const auto& left, const auto& right) { return left.second < right.second; };
  const auto [smallest, largest] = std::minmax_element(work.begin(), work.end(), less);
  const double usual = median_of(work);
  const bool is_small = usual - smallest->second > kFarther * (largest->second - usual);
  const auto unequal = is_small ? smallest : largest;
  double all = 0;
  for (const auto& [_, time] : work) all += time;
  UnequalStage found{unequal->first, rank_of.at(unequal->first)};
  for (const auto& [stage, time] : work)
    if (rank_of.at(stage) == found.rank && !is_small && time >= kAsLarge * unequal->second)
      found.stages.push_back(stage);
  if (unequal->second > 0) found.factor = unequal->second * static_cast<double>(work.size()) / all;
  return found;
}

}  // namespace bubblescope::inline sim
