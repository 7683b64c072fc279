// Adds up the work of every stage.
#include "sim/analysis/largest_stage.h"

#include <algorithm>
#include <map>
#include <vector>

namespace bubblescope::inline sim {

namespace {

/// The part of the largest stage's work from which on a stage of the same rank is as large.
constexpr double kAsLarge = 0.95;

}  // namespace

Cause largest_stage(std::span<const ReplicatedStep> steps, std::span<const Mend> mended) {
  std::map<std::int32_t, double> work;
  std::map<std::int32_t, std::int32_t> rank_of;
  for (const ReplicatedStep& step : steps) {
    const std::vector<Durations> durations = mend_durations(step, mended);
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        if (step[replica].is_beside(one.op)) return;
        work[one.op.stage] += static_cast<double>(durations[replica][id]);
        rank_of[one.op.stage] = one.rank;
      });
  }
  const auto largest = std::max_element(
      work.begin(), work.end(),
      [](const auto& left, const auto& right) { return left.second < right.second; });
  double all = 0;
  for (const auto& [_, time] : work) all += time;
  Cause cause{CauseKind::kStage};
  cause.stage = largest->first;
  cause.rank = rank_of.at(largest->first);
  for (const auto& [stage, time] : work)
    if (rank_of.at(stage) == cause.rank && time >= kAsLarge * largest->second)
      cause.stages.push_back(stage);
  if (all > 0) cause.factor = largest->second * static_cast<double>(work.size()) / all;
  return cause;
}

}  // namespace bubblescope::inline sim
