// Tests what is slow only at times, and what is slow only by chance.
#include "sim/analysis/slow_steps.h"

#include <gtest/gtest.h>

#include <list>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "sim/analysis/causes.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "tests/support/find_cause.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

constexpr std::int32_t kRanks = 4;

/// Steps of 1F1B with p = 4 and m = 8, whose ops take factor_of(step, replica, op) times as long.
class Steps {
 public:
  template <class FactorOf>
  Steps(std::size_t count, std::size_t replicas, FactorOf factor_of) {
    UniformCost cost;
    cost.forward = 10'000;
    cost.backward = 20'000;
    step_ = record_step("1f1b", {.ranks = kRanks, .microbatches = 8}, cost);
    for (std::size_t number = 0; number < count; ++number) {
      ReplicatedStep& all = steps_.emplace_back();
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        std::vector<Nanos> durations = collect_durations(step_->timeline);
        for (InstructionId id = 0; id < durations.size(); ++id) {
          const double factor = factor_of(number, replica, step_->program.instructions[id].op);
          durations[id] = static_cast<Nanos>(static_cast<double>(durations[id]) * factor);
        }
        all.push_back(
            {step_->program, timelines_.emplace_back(simulate(step_->program, durations))});
      }
    }
  }

  CauseReport causes() const { return find_causes(steps_); }

 private:
  std::optional<RecordedStep> step_;
  std::list<Timeline> timelines_;
  std::vector<ReplicatedStep> steps_;
};

// Rank 2 takes 1.3 times as long in steps 1, 4, and so on: with one replica and with two it is not
// an unequal stage, and is as fast as in its other steps without that.
TEST(SlowSteps, AWorkerThatIsSlowInSomeStepsIsNoStage) {
  for (const std::size_t replicas : {1U, 2U})
    for (const std::size_t slow : {1U, 3U, 4U, 6U}) {
      const Steps steps(8, replicas, [=](std::size_t step, std::size_t replica, const Op& op) {
        return op.stage == 2 && replica == 0 && step * 3 % 8 < slow ? 1.3 : 1.0;
      });
      const CauseReport report = steps.causes();
      EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr) << slow;
      const Cause* const worker = find_cause(report, CauseKind::kWorker);
      ASSERT_NE(worker, nullptr) << slow << " of " << replicas;
      EXPECT_EQ(worker->all_steps, 8);
      if (const auto* const often = std::get_if<SlowWorkers>(&worker->facts)) {
        EXPECT_EQ(often->workers, (std::vector<Worker>{{0, 2}}));
        EXPECT_EQ(often->steps, static_cast<std::int64_t>(slow));
        EXPECT_GT(replicas * slow, 6U) << "in most steps, and against another replica";
        continue;
      }
      const auto& facts = std::get<WorkerSlowAtTimes>(worker->facts);
      EXPECT_EQ(facts.worker, (Worker{0, 2}));
      EXPECT_EQ(facts.steps, static_cast<std::int64_t>(slow));
      EXPECT_NEAR(facts.factor, 1.3, 0.01);
    }
}

// All ops of rank 1 take 1.6 times as long in one step of four, and one op elsewhere as well: the
// rank was slow, and not paused 17 times.
TEST(SlowSteps, AWorkerThatIsSlowInAWholeStepHasNoPauses) {
  const Steps steps(4, 1, [](std::size_t step, std::size_t, const Op& op) {
    const bool is_other = step == 2 && op.stage == 3 && op.microbatch == 5;
    return (step == 1 && op.stage == 1) || (is_other && op.kind == OpKind::kForward) ? 1.6 : 1.0;
  });
  const CauseReport report = steps.causes();
  const Cause* const worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  const auto& facts = std::get<WorkerSlowAtTimes>(worker->facts);
  EXPECT_EQ(facts.worker, (Worker{0, 1}));
  EXPECT_EQ(facts.steps, 1);
  EXPECT_NEAR(facts.factor, 1.6, 0.01);
  EXPECT_EQ(find_cause(report, CauseKind::kPause), nullptr);
}

// In every other step rank 1 takes 1.42 times as long, or 1.62 for three micro-batches of eight, of
// which alone each is over 1.5: all are slow.
TEST(SlowSteps, AWorkerOfWhichSomeOpsAreSlowerStillHasNoPauses) {
  const Steps steps(6, 1, [](std::size_t step, std::size_t, const Op& op) {
    if (step % 2 == 0 || op.stage != 1) return 1.0;
    return op.microbatch % 8 < 3 ? 1.62 : 1.42;
  });
  const CauseReport report = steps.causes();
  EXPECT_EQ(find_cause(report, CauseKind::kPause), nullptr);
  const Cause* const worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  const auto& facts = std::get<WorkerSlowAtTimes>(worker->facts);
  EXPECT_EQ(facts.worker, (Worker{0, 1}));
  EXPECT_EQ(facts.steps, 3);
}

// Ops vary by 20 %: over 3 steps of 16 ops per rank, the medians of eight workers that are equally
// fast differ by more than 2 %, while one that takes 1.4 times as long is not chance.
TEST(SlowSteps, WhatNoiseExplainsIsNoCause) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0.8, 1.2);
    for (const double slow : {1.0, 1.4}) {
      const Steps steps(3, 2, [&](std::size_t, std::size_t replica, const Op& op) {
        return noise(random) * (replica == 1 && op.stage == 1 ? slow : 1.0);
      });
      const CauseReport report = steps.causes();
      EXPECT_EQ(find_cause(report, CauseKind::kWorker) != nullptr, slow == 1.4)
          << slow << " " << seed;
      EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr) << slow << " " << seed;
    }
  }
}

// Without noise, little is enough.
TEST(SlowSteps, ASlowWorkerWithoutNoiseIsACause) {
  const Steps steps(3, 2, [&](std::size_t, std::size_t replica, const Op& op) {
    return replica == 1 && op.stage == 1 ? 1.07 : 1.0;
  });
  EXPECT_NE(find_cause(steps.causes(), CauseKind::kWorker), nullptr);
}

// Rank 1 throttles: 4 % more from step to step, 1.28 times its first pace in the last of eight.
TEST(SlowSteps, AWorkerThatThrottlesIsSlowBesideItsFirstSteps) {
  const Steps even(8, 1, [](std::size_t, std::size_t, const Op&) { return 1.0; });
  const Steps steps(8, 1, [](std::size_t step, std::size_t, const Op& op) {
    return op.stage == 1 ? 1 + 0.04 * static_cast<double>(step) : 1.0;
  });
  const CauseReport report = steps.causes();
  const Cause* const worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(worker, &report.causes.front());
  const auto& facts = std::get<WorkerSlowAtTimes>(worker->facts);
  EXPECT_EQ(facts.worker.rank, 1);
  EXPECT_TRUE(facts.grows);
  EXPECT_NEAR(facts.factor, 1.28, 0.02);
  EXPECT_NEAR(static_cast<double>(report.replayed - worker->saves),
              static_cast<double>(even.causes().replayed), 0.01 * 330'000);
  EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr);
}

// With a replica to compare with, it is as fast as that in every step: how much it is slower in the
// middle one is not how much it is in all.
TEST(SlowSteps, AWorkerThatThrottlesIsSlowBesideItsStageElsewhere) {
  for (const bool at_once : {false, true})
    for (const std::size_t replicas : {2U, 3U}) {
      const Steps even(8, replicas, [](std::size_t, std::size_t, const Op&) { return 1.0; });
      const Steps steps(8, replicas, [=](std::size_t step, std::size_t replica, const Op& op) {
        if (op.stage != 1 || replica != 1) return 1.0;
        if (at_once) return step < 3 ? 1.0 : 1.25;
        return 1 + 0.04 * static_cast<double>(step);
      });
      const CauseReport report = steps.causes();
      const Cause* const worker = find_cause(report, CauseKind::kWorker);
      ASSERT_NE(worker, nullptr) << at_once << replicas;
      EXPECT_EQ(worker, &report.causes.front());
      EXPECT_NEAR(static_cast<double>(report.replayed - worker->saves),
                  static_cast<double>(even.causes().replayed), 0.005 * 330'000)
          << at_once << replicas;
    }
}

// So is a whole replica, beside the others.
TEST(SlowSteps, AReplicaThatThrottlesIsSlowBesideTheOthers) {
  const Steps even(8, 2, [](std::size_t, std::size_t, const Op&) { return 1.0; });
  const Steps steps(8, 2, [](std::size_t step, std::size_t replica, const Op&) {
    return replica == 1 ? 1 + 0.04 * static_cast<double>(step) : 1.0;
  });
  const CauseReport report = steps.causes();
  const Cause* const worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_TRUE(std::get<SlowWorkers>(worker->facts).whole_replicas);
  EXPECT_NEAR(static_cast<double>(report.replayed - worker->saves),
              static_cast<double>(even.causes().replayed), 0.005 * 330'000);
}

// Steps that are slow on all ranks: without them, all steps are as long as the others.
TEST(SlowSteps, StepsThatAreSlowOnAllRanksAreACause) {
  for (const std::size_t replicas : {1U, 2U})
    for (const std::size_t first : {0U, 3U}) {
      const Steps steps(8, replicas, [=](std::size_t step, std::size_t, const Op&) {
        return step == first || step == first + 1 ? 2.5 : 1.0;
      });
      const CauseReport report = steps.causes();
      ASSERT_EQ(report.causes.size(), 1U) << first;
      const Cause& slow = report.causes.front();
      EXPECT_EQ(slow.kind(), CauseKind::kSlowSteps);
      const auto& facts = std::get<SlowOnMostRanks>(slow.facts);
      EXPECT_EQ(facts.steps, 2);
      EXPECT_EQ(slow.all_steps, 8);
      EXPECT_DOUBLE_EQ(facts.factor, 2.5);
      EXPECT_EQ(facts.are_first, first == 0);
      EXPECT_EQ(report.replayed - slow.saves, 330'000);
    }
}

TEST(SlowSteps, StepsThatDifferByChanceAreNoCause) {
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0.8, 1.2);
    const Steps steps(8, 2, [&](std::size_t, std::size_t, const Op&) { return noise(random); });
    EXPECT_EQ(find_cause(steps.causes(), CauseKind::kSlowSteps), nullptr) << seed;
  }
}

}  // namespace
}  // namespace bubblescope::tests
