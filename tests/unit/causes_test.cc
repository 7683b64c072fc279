// Tests the causes of long steps on steps whose answers are known.
#include "sim/analysis/causes.h"

#include <gtest/gtest.h>

#include <functional>
#include <variant>
#include <vector>

#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "tests/support/find_cause.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// A step whose ops take factor(op) times as long.
RecordedStep stretch(RecordedStep step, const std::function<double(const Op&)>& factor) {
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < step.program.size(); ++id)
    durations[id] = static_cast<Nanos>(static_cast<double>(durations[id]) *
                                       factor(step.program.instructions[id].op));
  step.timeline = simulate(step.program, durations);
  return step;
}

/// 1F1B with p = 4, m = 8, F = 10, B = 20 and free messages; each op takes factor(op) times as
/// long.
RecordedStep recorded(const std::function<double(const Op&)>& factor, Nanos unit = 1) {
  UniformCost cost;
  cost.forward = 10 * unit;
  cost.backward = 20 * unit;
  return stretch(record_step("1f1b", {.ranks = 4, .microbatches = 8}, cost), factor);
}

/// The same with two chunks per rank, F = 1000 and B = 2000 of a rank.
RecordedStep recorded_in_chunks(const std::function<double(const Op&)>& factor) {
  UniformCost cost;
  cost.forward = 1000;
  cost.backward = 2000;
  return stretch(record_step("interleaved", {.ranks = 4, .chunks = 2, .microbatches = 8}, cost),
                 factor);
}

double even(const Op&) { return 1; }

ObservedStep observe(const RecordedStep& step) { return {step.program, step.timeline}; }

TEST(Causes, AreNoneWhereAllIsEven) {
  const RecordedStep step = recorded(even);
  const std::vector<ReplicatedStep> steps{{observe(step), observe(step)}};
  const CauseReport report = find_causes(steps);
  EXPECT_EQ(report.replayed, 330);  // (m+p-1)(F+B) = 11 * 30
  EXPECT_TRUE(report.causes.empty());
}

// Stage 3 takes 3 times as long in both replicas. Its work can be moved but not deleted: with equal
// stages each takes (1+1+1+3)/4 = 1.5 times as long, so the step takes 11 * 45 = 495.
TEST(Causes, EqualStagesKeepTheWork) {
  const RecordedStep step = recorded([](const Op& op) { return op.stage == 3 ? 3.0 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(step), observe(step)}};
  const CauseReport report = find_causes(steps);
  const Cause* stage = find_cause(report, CauseKind::kStage);
  ASSERT_NE(stage, nullptr);
  EXPECT_EQ(stage, &report.causes.front());
  const auto& facts = std::get<UnequalStage>(stage->facts);
  EXPECT_EQ(facts.stage, 3);
  EXPECT_EQ(facts.rank, 3);
  EXPECT_DOUBLE_EQ(facts.factor, 2);
  EXPECT_EQ(report.replayed - stage->saves, 495);
  EXPECT_EQ(find_cause(report, CauseKind::kWorker), nullptr);
}

// Only rank 1 of replica 1 takes twice as long. Without that, the step is as long as that of the
// other replica.
TEST(Causes, ASlowWorkerIsFoundAgainstItsStageElsewhere) {
  const RecordedStep step = recorded(even);
  const RecordedStep late = recorded([](const Op& op) { return op.stage == 1 ? 2.0 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)},
                                          {observe(step), observe(late)}};
  const CauseReport report = find_causes(steps);
  ASSERT_FALSE(report.causes.empty());
  const Cause& worker = report.causes.front();
  EXPECT_EQ(worker.kind(), CauseKind::kWorker);
  const auto& facts = std::get<SlowWorkers>(worker.facts);
  EXPECT_EQ(facts.workers, (std::vector<Worker>{{1, 1}}));
  EXPECT_DOUBLE_EQ(facts.factor, 2);
  EXPECT_EQ(facts.steps, 2);
  EXPECT_EQ(report.replayed - worker.saves, 330);
}

// All four workers of replica 1 are slow. None is an unequal stage, and removing one of them alone
// would save next to nothing.
TEST(Causes, ASlowReplicaIsOneCause) {
  const RecordedStep step = recorded(even);
  const RecordedStep late = recorded([](const Op&) { return 1.5; });
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)},
                                          {observe(step), observe(late)}};
  const CauseReport report = find_causes(steps);
  ASSERT_EQ(report.causes.size(), 1u);
  const Cause& replica = report.causes.front();
  EXPECT_EQ(replica.kind(), CauseKind::kWorker);
  const auto& facts = std::get<SlowWorkers>(replica.facts);
  EXPECT_TRUE(facts.whole_replicas);
  ASSERT_EQ(facts.workers.size(), 4u);
  EXPECT_EQ(facts.workers.front().replica, 1);
  EXPECT_DOUBLE_EQ(facts.factor, 1.5);
  EXPECT_EQ(report.replayed - replica.saves, 330);
  EXPECT_EQ(report.saved_together, replica.saves);
}

// Each worker is removed once where all causes are removed at once. Then micro-batch 7, which takes
// three times as long, makes the mean of all 1.25 times theirs: 11 * (10 + 20) * 1.25 = 412.5.
TEST(Causes, SlowWorkersAreRemovedOnceInAll) {
  const auto long_last = [](const Op& op) { return op.microbatch == 7 ? 3.0 : 1.0; };
  const RecordedStep step = recorded(long_last, 1000);
  const RecordedStep late = recorded([&](const Op& op) { return 1.5 * long_last(op); }, 1000);
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)}};
  const CauseReport report = find_causes(steps);
  ASSERT_NE(find_cause(report, CauseKind::kWorker), nullptr);
  ASSERT_NE(find_cause(report, CauseKind::kSequenceLengths), nullptr);
  EXPECT_EQ(report.replayed - report.saved_together, 412'500);
}

// Three of its workers: stage 2 is as large as the others, although removing it alone saves
// nothing.
TEST(Causes, SlowWorkersAreNoUnequalStagesHoweverMany) {
  const RecordedStep step = recorded_in_chunks(even);
  const RecordedStep late =
      recorded_in_chunks([](const Op& op) { return op.stage % 4 == 0 ? 1.0 : 1.5; });
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)}};
  const CauseReport report = find_causes(steps);
  EXPECT_NE(find_cause(report, CauseKind::kWorker), nullptr);
  EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr);
}

// The last backwards take three times as long on all stages: no stage, no worker, and no sequence,
// whose forwards would be long as well.
TEST(Causes, UnevenOpsAreACauseWhereNothingElseIs) {
  const RecordedStep step = recorded(
      [](const Op& op) { return op.kind == OpKind::kBackward && op.microbatch == 7 ? 3.0 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(step), observe(step)}};
  const CauseReport report = find_causes(steps);
  ASSERT_EQ(report.causes.size(), 1u);
  EXPECT_EQ(report.causes.front().kind(), CauseKind::kVariation);
  EXPECT_EQ(report.replayed - report.causes.front().saves, 11 * (10 + 25));  // B takes 20 * 10 / 8
}

// The other replica's optimizer ends 50 after its 330, so that the step takes 380 without the slow
// worker.
TEST(Causes, SavingsEndWithTheActivitiesAroundTheOps) {
  constexpr Nanos kMs = 1'000'000;
  const RecordedStep step = recorded(even, kMs);
  const RecordedStep late = recorded([](const Op& op) { return op.stage == 1 ? 2.0 : 1.0; }, kMs);
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)}};
  OuterActivity optimizer{"optimizer"};
  optimizer.start = 330 * kMs;
  optimizer.end = 380 * kMs;
  const std::vector<std::vector<OuterActivity>> activities{{optimizer}};
  const CauseReport report = find_causes(steps, activities);
  const Cause* worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(report.replayed - worker->saves, 380 * kMs);
}

// Both replicas have the same slow rank, so speeding up one of them leaves the step as long as it
// is.
TEST(Causes, OneWorkerOfTwoThatAreSlowSavesNothing) {
  const RecordedStep late = recorded([](const Op& op) { return op.stage == 1 ? 2.0 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(late), observe(late)}};
  EXPECT_EQ(find_cause(find_causes(steps), CauseKind::kWorker), nullptr);
}

// Micro-batches 0 to 7 take 1, 2, 1, 2 ... times as long, both forwards and backwards: 1.5 on
// average, so equal ones take 495. If only the forwards vary, sequence lengths are not the cause.
TEST(Causes, SequenceLengthsShowInForwardsAndBackwards) {
  const auto length = [](const Op& op) { return 1.0 + op.microbatch % 2; };
  const RecordedStep step = recorded(length);
  const std::vector<ReplicatedStep> steps{{observe(step)}};
  const CauseReport report = find_causes(steps);
  const Cause* lengths = find_cause(report, CauseKind::kSequenceLengths);
  ASSERT_NE(lengths, nullptr);
  EXPECT_NEAR(std::get<UnequalMicrobatches>(lengths->facts).correlation, 1, 1e-9);
  EXPECT_EQ(report.replayed - lengths->saves, 495);
  const RecordedStep jitter =
      recorded([&](const Op& op) { return op.kind == OpKind::kForward ? length(op) : 1.0; });
  const std::vector<ReplicatedStep> others{{observe(jitter)}};
  EXPECT_EQ(find_cause(find_causes(others), CauseKind::kSequenceLengths), nullptr);
}

// The forward of micro-batch 3 on stage 2 takes 110 instead of 10, in one replica of one step.
TEST(Causes, APauseIsNoUnequalStage) {
  const auto pause = [](const Op& op) {
    return op.kind == OpKind::kForward && op.stage == 2 && op.microbatch == 3 ? 11.0 : 1.0;
  };
  const RecordedStep step = recorded(pause);
  const std::vector<ReplicatedStep> steps{{observe(step)}};
  const CauseReport report = find_causes(steps);
  const Cause* found = find_cause(report, CauseKind::kPause);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(report.causes.size(), 1u);
  EXPECT_EQ(report.replayed - found->saves, 330);
  EXPECT_EQ(report.saved_together, found->saves);
}

// Stage 3 has twice the work besides: what balancing saves does not depend on the pause.
TEST(Causes, UnequalStagesSaveTheSameWithAPause) {
  const auto large = [](const Op& op) { return op.stage == 3 ? 2.0 : 1.0; };
  const auto both = [&](const Op& op) {
    const bool pauses = op.kind == OpKind::kForward && op.stage == 3 && op.microbatch == 3;
    return large(op) + (pauses ? 10.0 : 0.0);
  };
  const RecordedStep step = recorded(large);
  const RecordedStep paused = recorded(both);
  const std::vector<ReplicatedStep> steps{{observe(step)}};
  const std::vector<ReplicatedStep> paused_steps{{observe(paused)}};
  const CauseReport report = find_causes(paused_steps);
  const Cause* const alone = find_cause(report, CauseKind::kStage);
  ASSERT_NE(alone, nullptr);
  EXPECT_EQ(alone->saves, find_cause(find_causes(steps), CauseKind::kStage)->saves);
  ASSERT_NE(find_cause(report, CauseKind::kPause), nullptr);
  EXPECT_EQ(report.saved_together, alone->saves + find_cause(report, CauseKind::kPause)->saves);
}

// Stage 3 is a little slow in one replica: it is the worker's time, and no stage is unequal as
// well.
TEST(Causes, ASlowWorkerIsNotItsStageToo) {
  const RecordedStep step = recorded(even, 10);
  const RecordedStep late = recorded([](const Op& op) { return op.stage == 3 ? 1.08 : 1.0; }, 10);
  const std::vector<ReplicatedStep> steps{{observe(step), observe(late)}};
  const CauseReport report = find_causes(steps);
  const Cause* const worker = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr);
  EXPECT_EQ(report.saved_together, worker->saves);
}

// A worker of one replica that takes twice as long makes its stage no larger, and its micro-batches
// no longer.
TEST(Causes, AClearlySlowWorkerIsNothingElse) {
  for (const std::int32_t slow : {0, 1, 2, 3}) {
    const RecordedStep step = recorded(even);
    const RecordedStep late = recorded([=](const Op& op) { return op.stage == slow ? 2.0 : 1.0; });
    const std::vector<ReplicatedStep> steps{{observe(step), observe(late)},
                                            {observe(step), observe(late)}};
    const CauseReport report = find_causes(steps);
    ASSERT_EQ(report.causes.size(), 1u) << slow;
    EXPECT_EQ(report.causes.front().kind(), CauseKind::kWorker) << slow;
  }
}

// All ranks of one replica are slow, or all of one step: no micro-batch is longer than the others.
TEST(Causes, SlowReplicasAndStepsHaveNoUnequalMicrobatches) {
  const RecordedStep step = recorded(even);
  const RecordedStep late = recorded([](const Op&) { return 2.0; });
  const std::vector<ReplicatedStep> replicas{{observe(step), observe(late)},
                                             {observe(step), observe(late)}};
  EXPECT_EQ(find_cause(find_causes(replicas), CauseKind::kSequenceLengths), nullptr);
  const std::vector<ReplicatedStep> later{{observe(step)}, {observe(late)}};
  EXPECT_EQ(find_cause(find_causes(later), CauseKind::kSequenceLengths), nullptr);
}

// Rank 1 takes 2.5 times as long for micro-batches 2, 5 and 7 of every step: its ops are too many
// to be rare, its forwards and backwards grow together, but no other rank's do.
TEST(Causes, AWorkerThatIsSlowForSomeMicrobatches) {
  const RecordedStep step = recorded([](const Op& op) {
    const bool slow = op.microbatch == 2 || op.microbatch == 5 || op.microbatch == 7;
    return slow && op.stage == 1 ? 2.5 : 1.0;
  });
  const std::vector<ReplicatedStep> steps{{observe(step)}, {observe(step)}};
  const CauseReport report = find_causes(steps);
  ASSERT_EQ(report.causes.size(), 1u);
  const Cause& cause = report.causes.front();
  EXPECT_EQ(cause.kind(), CauseKind::kPause);
  const auto& facts = std::get<InterruptedOps>(cause.facts);
  EXPECT_EQ(facts.count, 12);
  EXPECT_EQ(facts.steps, 2);
  EXPECT_EQ(facts.worker, (Worker{0, 1}));
  EXPECT_EQ(report.replayed - cause.saves, 330);
}

// Both chunks of rank 1 take twice as long: its rank is named with both of them.
TEST(Causes, StagesOfOneRankAreNamedTogether) {
  const RecordedStep step =
      recorded_in_chunks([](const Op& op) { return op.stage % 4 == 1 ? 2.0 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(step)}};
  const CauseReport report = find_causes(steps);
  const Cause* const stage = find_cause(report, CauseKind::kStage);
  ASSERT_NE(stage, nullptr);
  const auto& facts = std::get<UnequalStage>(stage->facts);
  EXPECT_EQ(facts.rank, 1);
  EXPECT_EQ(facts.stages, (std::vector<std::int32_t>{1, 5}));
}

// From the fourth step on one rank takes 1.5 times as long, which is a change of its ops alone.
TEST(Causes, DriftsOfOneRankAreNotGivenToAll) {
  const RecordedStep step = recorded(even);
  const RecordedStep late = recorded([](const Op& op) { return op.stage == 1 ? 1.6 : 1.0; });
  const std::vector<ReplicatedStep> steps{{observe(step)}, {observe(step)}, {observe(step)},
                                          {observe(late)}, {observe(late)}, {observe(late)}};
  const CauseReport report = find_causes(steps);
  const Cause* const drift = find_cause(report, CauseKind::kDrift);
  ASSERT_NE(drift, nullptr);
  const auto& facts = std::get<SlowerOps>(drift->facts);
  EXPECT_EQ(facts.steps, 3);
  EXPECT_NEAR(facts.factor, 1.6, 1e-9);
  EXPECT_EQ(report.causes.size(), 1u);  // neither pauses nor an unequal stage as well
  EXPECT_EQ(facts.workers, (std::vector<Worker>{{0, 1}}));
  EXPECT_EQ(report.replayed - drift->saves, 330);
}

// Stages from 4 on are shards of the output layer, which take a tenth of the time of a stage.
TEST(Causes, ShardsOfTheOutputLayerAreNoStages) {
  const auto shards = [](const Op& op) { return op.stage >= 4 ? 0.1 : 1.0; };
  const RecordedStep step = recorded_in_chunks(shards);
  const std::vector<ReplicatedStep> steps{{{step.program, step.timeline, 4}}};
  EXPECT_EQ(find_cause(find_causes(steps), CauseKind::kStage), nullptr);
  const std::vector<ReplicatedStep> as_stages{{observe(step)}};
  EXPECT_NE(find_cause(find_causes(as_stages), CauseKind::kStage), nullptr);
  const std::vector<ObservedStep> alone{{step.program, step.timeline, 4}};
  for (const StageSpeed& speed : find_stragglers(alone).stages) {
    EXPECT_LT(speed.stage, 4);
    EXPECT_DOUBLE_EQ(speed.slowness(), 1);
  }
  EXPECT_DOUBLE_EQ(find_slowdown(steps).slowdown, 1);
}

/// Six steps of two replicas, of which replica 1 takes factor(op) times as long. Replica 0 begins
/// `delay` later.
class TwoReplicas {
 public:
  explicit TwoReplicas(const std::function<double(const Op&)>& factor, Nanos delay = 0)
      : usual_(recorded(even, 1'000)), other_(recorded(factor, 1'000)) {
    for (int step = 0; step < 6; ++step) {
      steps_.push_back({observe(usual_), observe(other_)});
      steps_.back().front().delay = delay;
    }
  }

  CauseReport causes() const { return find_causes(steps_); }

 private:
  RecordedStep usual_;
  RecordedStep other_;
  std::vector<ReplicatedStep> steps_;
};

double slow_second_stage(const Op& op) { return op.stage == 1 ? 1.25 : 1.0; }

// Removing a slow worker gains nothing while the step waits for another replica.
TEST(Causes, AWorkerCostsNoMoreThanItsReplicaIsLast) {
  const CauseReport alone = TwoReplicas(slow_second_stage).causes();
  const Cause* worker = find_cause(alone, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_EQ(std::get<SlowWorkers>(worker->facts).workers.front().replica, 1);
  const Nanos lost = alone.replayed - 330'000;
  EXPECT_NEAR(static_cast<double>(worker->saves), static_cast<double>(lost), 2);

  const Nanos delay = lost / 2;
  const CauseReport half = TwoReplicas(slow_second_stage, delay).causes();
  EXPECT_EQ(half.replayed, alone.replayed);
  worker = find_cause(half, CauseKind::kWorker);
  ASSERT_NE(worker, nullptr);
  EXPECT_NEAR(static_cast<double>(worker->saves), static_cast<double>(lost - delay), 2);

  const CauseReport hidden = TwoReplicas(slow_second_stage, 2 * lost).causes();
  EXPECT_EQ(hidden.replayed, 330'000 + 2 * lost);
  EXPECT_EQ(find_cause(hidden, CauseKind::kWorker), nullptr);
}

// The other replica shows that the stage is as large as others.
TEST(Causes, AWorkerThatIsSlowForSomeMicrobatchesIsNoUnequalStage) {
  for (const double factor : {1.2, 1.4, 1.6}) {
    const CauseReport report = TwoReplicas([&](const Op& op) {
                                 return op.stage == 2 && op.microbatch % 4 == 1 ? factor : 1.0;
                               }).causes();
    const Cause* long_ops = find_cause(report, CauseKind::kPause);
    ASSERT_NE(long_ops, nullptr) << factor;
    EXPECT_EQ(long_ops, &report.causes.front());
    const auto& facts = std::get<InterruptedOps>(long_ops->facts);
    EXPECT_EQ(facts.count, 6 * 2 * 2);
    EXPECT_EQ(facts.worker, (Worker{1, 2}));
    EXPECT_NEAR(static_cast<double>(report.replayed - long_ops->saves), 330'000, 2);
    EXPECT_EQ(find_cause(report, CauseKind::kStage), nullptr) << factor;
  }
}

TEST(Causes, AReplicaThatIsALittleSlowerIsOneCause) {
  const CauseReport report = TwoReplicas([](const Op&) { return 1.06; }).causes();
  const Cause* replica = find_cause(report, CauseKind::kWorker);
  ASSERT_NE(replica, nullptr);
  const auto& facts = std::get<SlowWorkers>(replica->facts);
  EXPECT_TRUE(facts.whole_replicas);
  EXPECT_EQ(facts.workers.size(), 4u);
  EXPECT_NEAR(static_cast<double>(replica->saves), 0.06 * 330'000, 10);
}

}  // namespace
}  // namespace bubblescope::tests
