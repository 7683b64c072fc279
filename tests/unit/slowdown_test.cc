// StragglerAnalysis' measures, on two stages and one micro-batch.
#include "sim/analysis/slowdown.h"

#include <gtest/gtest.h>

#include <variant>

#include "sim/analysis/causes.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/valid_schedule.h"
#include "tests/support/recorded_step.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::tests {
namespace {

/// 0F0 1F0 1B0 0B0 in sequence, messages take no time.
struct Recorded {
  Program program;
  Timeline timeline;
};

Recorded recorded(Nanos f0, Nanos f1, Nanos b1, Nanos b0) {
  const Op forward{0, 0, 0, OpKind::kForward};
  Op second_forward = forward;
  second_forward.stage = 1;
  Op second_backward = second_forward;
  second_backward.kind = OpKind::kBackward;
  Op backward = forward;
  backward.kind = OpKind::kBackward;
  const ValidSchedule schedule = std::get<ValidSchedule>(validate_schedule(
      traces::infer_schedule("two", {{forward, backward}, {second_forward, second_backward}},
                             [](std::int32_t, std::size_t) { return std::string("here"); })));
  Recorded made{std::get<Program>(lower(schedule)), {}};
  Nanos at = 0;
  made.timeline.start.assign(made.program.size(), 0);
  made.timeline.end.assign(made.program.size(), 0);
  const auto place = [&](const Op& op, Nanos duration) {
    for (InstructionId id = 0; id < made.program.size(); ++id)
      if (to_string(made.program.instructions[id].op) == to_string(op)) {
        made.timeline.start[id] = at;
        made.timeline.end[id] = at + duration;
      }
    at += duration;
  };
  place(forward, f0);
  place(second_forward, f1);
  place(second_backward, b1);
  place(backward, b0);
  return made;
}

// Forwards take 10 and 30, backwards 20 and 20: the mean is 20 each, so balancing a chain gains
// nothing, 80 either way; S is 1 although stage 1 is slow.
TEST(Slowdown, ConservesWork) {
  const Recorded one = recorded(10, 30, 20, 20);
  const std::vector<ReplicatedStep> steps{{{one.program, one.timeline}}};
  const SlowdownReport report = find_slowdown(steps);
  EXPECT_EQ(report.replayed, 80);
  EXPECT_EQ(report.fixed, 80);
  EXPECT_DOUBLE_EQ(report.slowdown, 1);
  EXPECT_DOUBLE_EQ(report.worker_share, 0);
}

// Every op takes 10 and every message 5, so nothing is slower than the mean. Posts and waits take
// no time, and are not messages that would be as quick.
TEST(Slowdown, PostsAndWaitsAreNoMessages) {
  const auto schedule = std::get<ValidSchedule>(validate_schedule(
      traces::infer_schedule("two",
                             {{{0, 0, 0, OpKind::kForward}, {0, 0, 0, OpKind::kBackward}},
                              {{1, 0, 0, OpKind::kForward}, {1, 0, 0, OpKind::kBackward}}},
                             [](std::int32_t, std::size_t) { return std::string("here"); })));
  LowerOptions options;
  options.mode = P2pMode::kRendezvous;
  const Program program = std::get<Program>(lower(schedule, options));
  std::vector<Nanos> durations;
  for (const Instruction& one : program.instructions)
    durations.push_back(is_compute(one.op.kind) ? 10 : is_message(one) ? 5 : 0);
  const Timeline timeline = simulate(program, durations);
  const std::vector<ReplicatedStep> steps{{{program, timeline}}};
  const SlowdownReport report = find_slowdown(steps);
  EXPECT_EQ(report.replayed, 50);
  EXPECT_EQ(report.fixed, 50);
}

// The second replica's rank 1 takes 50 for its forward: forwards take (10+10+10+50)/4 = 20 in the
// mean. T = 10+50+20+20 = 100, all fixed 2*20+2*20 = 80. All but replica 1 fixed: 10+50+20+20 =
// 100; all but rank 1: 20+50+20+20 = 110; of its worker the smaller one counts. Fixing that worker
// alone: its forward 20, so the slower replica takes 70 and the excess of 20 is gone and 10 more:
// M_W = 30/20. Rank 1 is the last stage: in both replicas at 20, these take 70 as well.
TEST(Slowdown, AStepEndsWithItsSlowestReplica) {
  const Recorded fast = recorded(10, 10, 20, 20);
  const Recorded slow = recorded(10, 50, 20, 20);
  const std::vector<ReplicatedStep> steps{
      {{fast.program, fast.timeline}, {slow.program, slow.timeline}}};
  const SlowdownReport report = find_slowdown(steps);
  EXPECT_EQ(report.replayed, 100);
  EXPECT_EQ(report.fixed, 80);
  EXPECT_DOUBLE_EQ(report.slowdown, 1.25);
  EXPECT_EQ(report.by_replica, (std::vector<double>{1, 100.0 / 80}));
  EXPECT_EQ(report.by_stage, (std::vector<double>{70.0 / 80, 110.0 / 80}));
  ASSERT_EQ(report.by_worker.size(), 4u);
  EXPECT_DOUBLE_EQ(report.by_worker[3].slowdown, 100.0 / 80);
  EXPECT_DOUBLE_EQ(report.by_worker[1].slowdown, 1);
  EXPECT_EQ(report.by_step,
            (std::vector<std::vector<double>>{{70.0 / 80, 1, 70.0 / 80, 100.0 / 80}}));
  EXPECT_DOUBLE_EQ(report.worker_share, 1.5);
  EXPECT_DOUBLE_EQ(report.last_stage_share, 1.5);
  EXPECT_DOUBLE_EQ(*report.by_kind[static_cast<std::size_t>(OpKind::kBackward)], 1);
}

// Kinds are fixed to their mean over all steps, so that a slow step is slow: forwards take 10 in
// one step and 30 in the other, 20 in the mean.
TEST(Slowdown, StepsAreComparedWithTheMeanStep) {
  const Recorded fast = recorded(10, 10, 20, 20);
  const Recorded slow = recorded(30, 30, 20, 20);
  const std::vector<ReplicatedStep> steps{{{fast.program, fast.timeline}},
                                          {{slow.program, slow.timeline}}};
  const SlowdownReport report = find_slowdown(steps);
  EXPECT_DOUBLE_EQ(report.slowdown, 1);
  // Rank 0's own forward and the mean one: 10+20 and 30+20, with backwards of 20+20.
  EXPECT_EQ(report.by_step,
            (std::vector<std::vector<double>>{{60.0 / 80, 60.0 / 80}, {90.0 / 80, 90.0 / 80}}));
}

/// 1F1B with p = 4, m = 8, messages of 7 and a last stage that takes twice as long.
RecordedStep with_slow_stage() {
  UniformCost cost;
  cost.forward = 100;
  cost.backward = 200;
  cost.message = 7;
  RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 8}, cost);
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (step.program.instructions[id].op.stage == 3 && !is_message(step.program.instructions[id]))
      durations[id] *= 2;
  step.timeline = simulate(step.program, durations);
  return step;
}

/// The same as a host records it that takes a message when the op that it runs meanwhile has ended.
Timeline taken_by_host(const RecordedStep& step) {
  Timeline timeline = step.timeline;
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& message = step.program.instructions[id];
    if (!is_message(message)) continue;
    for (InstructionId other = 0; other < step.program.size(); ++other) {
      const bool runs = is_compute(step.program.instructions[other].op.kind) &&
                        step.program.instructions[other].rank == message.peer &&
                        step.timeline.start[other] < step.timeline.end[id] &&
                        step.timeline.end[other] > step.timeline.end[id];
      if (runs) timeline.end[id] = step.timeline.end[other];
    }
  }
  return timeline;
}

// The time for which a message waits for its receiver is not travel: every time is that of the step
// whose messages are recorded exactly, and the causes begin at the same replay.
TEST(Slowdown, IsTheSameWhereMessagesWaitForTheirReceiver) {
  const RecordedStep step = with_slow_stage();
  const Timeline waiting = taken_by_host(step);
  ASSERT_NE(waiting.end, step.timeline.end);
  const std::vector<ReplicatedStep> exact{{{step.program, step.timeline}}};
  const std::vector<ReplicatedStep> taken{{{step.program, waiting}}};
  const SlowdownReport expected = find_slowdown(exact);
  const SlowdownReport found = find_slowdown(taken);
  EXPECT_EQ(found.replayed, expected.replayed);
  EXPECT_EQ(found.fixed, expected.fixed);
  EXPECT_EQ(found.by_stage, expected.by_stage);
  EXPECT_EQ(found.by_kind, expected.by_kind);
  const CauseReport causes = find_causes(taken);
  EXPECT_TRUE(causes.is_known);
  EXPECT_EQ(causes.replayed, found.replayed);
  // Each op takes 1.25 times as long, as with equal stages.
  ASSERT_FALSE(causes.causes.empty());
  EXPECT_EQ(causes.causes.front().kind(), CauseKind::kStage);
  EXPECT_EQ(causes.causes.front().left, found.fixed);
}

// The reduction's own 10 would be saved from the time outside the ops.
TEST(Slowdown, IncludesTheActivitiesAroundTheOps) {
  constexpr Nanos kMs = 1'000'000;
  const Recorded one = recorded(10 * kMs, 30 * kMs, 20 * kMs, 20 * kMs);
  const std::vector<ReplicatedStep> steps{{{one.program, one.timeline}}};
  OuterActivity reduce{"reduce", 0, 0, ActivityGroup::kReplicas, true};
  reduce.start = 80 * kMs;
  reduce.end = 90 * kMs;
  const std::vector<std::vector<OuterActivity>> activities{{reduce}};
  const SlowdownReport report = find_slowdown(steps, activities);
  EXPECT_TRUE(report.has_whole_steps);
  EXPECT_EQ(report.replayed, 90 * kMs);
  ASSERT_EQ(report.by_activity.size(), 1u);
  EXPECT_EQ(report.by_activity[0].name, "reduce");
  EXPECT_EQ(report.by_activity[0].saves, std::vector<Nanos>{10 * kMs});
}

}  // namespace
}  // namespace bubblescope::tests
