// Stages that differ from the others, upwards or downwards.
#include "sim/analysis/unequal_stage.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// The unequal stage of 1F1B, of which stage s takes factors[s] times as long.
UnequalStage unequal_stage_of(const std::vector<double>& factors) {
  UniformCost cost;
  cost.forward = 1'000;
  cost.backward = 2'000;
  RecordedStep step = record_step(
      "1f1b", {.ranks = static_cast<std::int32_t>(factors.size()), .microbatches = 8}, cost);
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < step.program.size(); ++id)
    durations[id] = static_cast<Nanos>(
        static_cast<double>(durations[id]) *
        factors[static_cast<std::size_t>(step.program.instructions[id].op.stage)]);
  const Timeline timeline = simulate(step.program, durations);
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  return find_unequal_stage(steps, {});
}

TEST(UnequalStage, IsTheOneThatIsFarthestFromTheOthers) {
  const UnequalStage large = unequal_stage_of({1, 1, 1, 1.5});
  EXPECT_EQ(large.stage, 3);
  EXPECT_NEAR(large.factor, 1.5 / 1.125, 1e-9);
  const UnequalStage small = unequal_stage_of({1, 0.6, 1, 1});
  EXPECT_EQ(small.stage, 1);
  EXPECT_EQ(small.rank, 1);
  EXPECT_NEAR(small.factor, 0.6 / 0.9, 1e-9);
  // The heavier one is said where both differ: it is the bottleneck.
  EXPECT_EQ(unequal_stage_of({0.8, 1, 1, 1.2}).stage, 3);
  EXPECT_EQ(unequal_stage_of({1, 1}).factor, 1);
  EXPECT_EQ(unequal_stage_of({1, 1.5}).stage, 1);
}

}  // namespace
}  // namespace bubblescope::tests
