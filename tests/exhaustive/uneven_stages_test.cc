// Stages of different cost: GPipe's makespan is known exactly, 1F1B's within bounds.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "sim/engine/simulate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr int kTrials = 300;
constexpr unsigned kSeed = 20240607;

/// A pipeline of random length with random times for every stage.
struct Pipeline {
  ScheduleRequest request;
  CostModel costs;
};

Pipeline random_pipeline(std::mt19937& random) {
  std::uniform_int_distribution<std::int32_t> ranks(1, 8);
  std::uniform_int_distribution<std::int32_t> microbatches(1, 33);
  std::uniform_int_distribution<Nanos> time(1, 1000);
  Pipeline pipeline;
  pipeline.request.shape.ranks = ranks(random);
  pipeline.request.shape.microbatches = microbatches(random);
  for (std::int32_t stage = 0; stage < pipeline.request.shape.ranks; ++stage) {
    StageCost& cost = pipeline.costs.stages.emplace_back();
    cost.forward = time(random);
    cost.backward = time(random);
  }
  return pipeline;
}

Nanos simulated_makespan(const char* name, const Pipeline& pipeline) {
  const Program program = lower_or_throw(build_schedule(find_schedule(name), pipeline.request));
  return times_of(program, simulate(program, pipeline.costs)).makespan;
}

/// Sums and maxima over the stages of F, B and F + B, and the lower bound of 1F1B's makespan.
struct Sums {
  Nanos turns = 0;
  Nanos slowest_forward = 0;
  Nanos slowest_backward = 0;
  Nanos slowest_turn = 0;
  /// max_s (sum_{j<s} (F_j + B_j) + m (F_s + B_s)): stage s cannot start before one micro-batch has
  /// reached it, nor end before the last one has returned from it.
  Nanos lower_bound = 0;
};

Sums sum_up(const Pipeline& pipeline) {
  Sums sums;
  for (const StageCost& cost : pipeline.costs.stages) {
    const Nanos turn = cost.forward + cost.backward;
    sums.lower_bound =
        std::max(sums.lower_bound, sums.turns + pipeline.request.shape.microbatches * turn);
    sums.turns += turn;
    sums.slowest_forward = std::max(sums.slowest_forward, cost.forward);
    sums.slowest_backward = std::max(sums.slowest_backward, cost.backward);
    sums.slowest_turn = std::max(sums.slowest_turn, turn);
  }
  return sums;
}

TEST(GPipe, MakespanIsExactForUnevenStages) {
  // A flow shop with the same order on all machines, first down, then up: T = sum F + (m-1) max F +
  // sum B + (m-1) max B.
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Pipeline pipeline = random_pipeline(random);
    const Sums sums = sum_up(pipeline);
    const Nanos others = pipeline.request.shape.microbatches - 1;
    EXPECT_EQ(simulated_makespan("gpipe", pipeline),
              sums.turns + others * (sums.slowest_forward + sums.slowest_backward))
        << "seed " << kSeed << ", trial " << trial;
  }
}

TEST(OneFOneB, MakespanIsWithinItsBoundsForUnevenStages) {
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < kTrials; ++trial) {
    const Pipeline pipeline = random_pipeline(random);
    const Sums sums = sum_up(pipeline);
    const Nanos others = pipeline.request.shape.microbatches - 1;
    const Nanos makespan = simulated_makespan("1f1b", pipeline);
    EXPECT_GE(makespan, sums.lower_bound) << "seed " << kSeed << ", trial " << trial;
    EXPECT_LE(makespan, sums.turns + others * (sums.slowest_forward + sums.slowest_backward))
        << "seed " << kSeed << ", trial " << trial;
  }
}

TEST(OneFOneB, SlowestTurnBoundsTheMakespanWhereBackwardsAreInProportion) {
  // With B_s = 2 F_s on every stage, T <= sum (F + B) + (m-1) max (F + B).
  std::mt19937 random(kSeed);
  for (int trial = 0; trial < kTrials; ++trial) {
    Pipeline pipeline = random_pipeline(random);
    for (StageCost& cost : pipeline.costs.stages) cost.backward = 2 * cost.forward;
    const Sums sums = sum_up(pipeline);
    const Nanos others = pipeline.request.shape.microbatches - 1;
    EXPECT_LE(simulated_makespan("1f1b", pipeline), sums.turns + others * sums.slowest_turn)
        << "seed " << kSeed << ", trial " << trial;
  }
}

TEST(OneFOneB, SlowestTurnDoesNotBoundTheMakespanInGeneral) {
  // F = 5 1 1, B = 1 5 1, m = 2. Rank 1 runs F1 before B0, and F1 comes down at 10, so that
  //   rank 1: F0 5-6, F1 10-11, B0 11-16, B1 16-21    rank 0: B0 16-17, B1 21-22
  // where the slowest turn, 6, would promise (7 + 7) + 6 = 20.
  Pipeline pipeline;
  pipeline.request.shape.ranks = 3;
  pipeline.request.shape.microbatches = 2;
  pipeline.costs.stages.resize(3);
  for (const auto& [stage, forward, backward] : {std::array{0, 5, 1}, {1, 1, 5}, {2, 1, 1}}) {
    pipeline.costs.stages[stage].forward = forward;
    pipeline.costs.stages[stage].backward = backward;
  }
  EXPECT_EQ(simulated_makespan("1f1b", pipeline), 22);
}

}  // namespace
}  // namespace bubblescope::tests
