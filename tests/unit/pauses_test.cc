// Tests the causes that lie between and within ops: messages, launches, pauses and drift.
#include "sim/analysis/pauses.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <list>
#include <optional>
#include <variant>

#include "sim/analysis/causes.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "tests/support/find_cause.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// 1F1B with p = 4, m = 8, F = 100, B = 200; messages take `message`.
RecordedStep recorded(Nanos message = 0) {
  UniformCost cost;
  cost.forward = 100;
  cost.backward = 200;
  cost.message = message;
  return record_step("1f1b", {.ranks = 4, .microbatches = 8}, cost);
}

/// The step with every op's start delayed by gap(op).
Timeline delay(const RecordedStep& step, const std::function<Nanos(const Instruction&)>& gap) {
  std::vector<Nanos> durations = collect_durations(step.timeline);
  std::vector<Nanos> gaps;
  for (InstructionId id = 0; id < durations.size(); ++id) {
    gaps.push_back(gap(step.program.instructions[id]));
    durations[id] += gaps[id];
  }
  Timeline delayed = simulate(step.program, durations);
  for (InstructionId id = 0; id < durations.size(); ++id) delayed.start[id] += gaps[id];
  return delayed;
}

std::optional<SlowLink> slow_link_of(const Cause& cause) {
  const auto* const messages = std::get_if<ExposedMessages>(&cause.facts);
  return messages == nullptr ? std::nullopt : messages->link;
}

bool is_op(const Instruction& one, const std::string& op) {
  return is_compute(one.op.kind) && to_string(one.op) == op;
}

// The critical path has 2 (p - 1) messages of 10 in fill and drain, and more where ranks alternate.
TEST(Causes, MessagesCostWhatAStepWithoutThemSaves) {
  const RecordedStep step = recorded(10);
  const std::vector<ReplicatedStep> steps{{{step.program, step.timeline}}};
  const CauseReport report = find_causes(steps);
  const Cause* messages = find_cause(report, CauseKind::kCommunication);
  ASSERT_NE(messages, nullptr);
  EXPECT_EQ(messages->saves, compute_makespan(step.timeline) - 11 * 300);
}

// Messages between ranks 1 and 2 take 80, or only those from 2 to 1 do; those of other links 10.
TEST(Causes, ASlowLinkIsNamed) {
  for (const bool both_ways : {true, false}) {
    const RecordedStep step = recorded(10);
    std::vector<Nanos> durations = collect_durations(step.timeline);
    for (InstructionId id = 0; id < durations.size(); ++id) {
      const Instruction& one = step.program.instructions[id];
      if (!is_message(one)) continue;
      if (one.rank == 2 && one.peer == 1) durations[id] = 80;
      if (both_ways && one.rank == 1 && one.peer == 2) durations[id] = 80;
    }
    const Timeline timeline = simulate(step.program, durations);
    const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
    const CauseReport report = find_causes(steps);
    const auto slow =
        std::find_if(report.causes.begin(), report.causes.end(),
                     [](const Cause& cause) { return slow_link_of(cause).has_value(); });
    ASSERT_NE(slow, report.causes.end());
    EXPECT_EQ(slow->kind(), CauseKind::kCommunication);
    const SlowLink link = *slow_link_of(*slow);
    EXPECT_EQ(std::minmax(link.from, link.to), std::minmax(1, 2));
    EXPECT_EQ(link.both_ways, both_ways);
    EXPECT_EQ(link.time, 80);
    EXPECT_EQ(link.usual, 10);
    EXPECT_EQ(slow->saves, compute_makespan(timeline) - compute_makespan(step.timeline));
  }
  const RecordedStep even = recorded(10);
  const std::vector<ReplicatedStep> steps{{{even.program, even.timeline}}};
  const CauseReport report = find_causes(steps);
  EXPECT_FALSE(slow_link_of(*find_cause(report, CauseKind::kCommunication)).has_value());
}

// One gap of 150 before 3F4, which is on the critical path: without it the step is 150 shorter.
TEST(Causes, ALongRareGapIsAPause) {
  const RecordedStep step = recorded();
  const Timeline timeline =
      delay(step, [](const Instruction& one) { return is_op(one, "3F4") ? 150 : 0; });
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  EXPECT_EQ(count_pauses(steps), 1);
  const CauseReport report = find_causes(steps);
  const Cause* pause = find_cause(report, CauseKind::kPause);
  ASSERT_NE(pause, nullptr);
  EXPECT_EQ(pause->saves, 150);
  const auto& gaps = std::get<LongGaps>(pause->facts);
  EXPECT_EQ(gaps.rank, 3);
  EXPECT_EQ(gaps.steps, 1);
  EXPECT_EQ(find_cause(report, CauseKind::kLaunch), nullptr);
}

// A profile without messages: a gap that is long and rare is a pause, although its op may have
// waited for a message; others are not known.
TEST(Causes, APauseIsNoMessageThatWasNotRecorded) {
  const RecordedStep step = recorded();
  Timeline timeline =
      delay(step, [](const Instruction& one) { return is_op(one, "3F4") ? 150 : 0; });
  timeline.is_imported = true;
  timeline.may_lack_messages = true;
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  const CauseReport report = find_causes(steps);
  EXPECT_EQ(find_cause(report, CauseKind::kCommunication), nullptr);
  const Cause* pause = find_cause(report, CauseKind::kPause);
  ASSERT_NE(pause, nullptr);
  EXPECT_EQ(pause->saves, 150);
}

// Every op of rank 2 starts 20 late. The step without the gaps takes (m + p - 1)(F + B) = 3300.
TEST(Causes, ManySmallGapsAreLateLaunches) {
  const RecordedStep step = recorded();
  const Timeline timeline = delay(step, [](const Instruction& one) {
    return one.rank == 2 && is_compute(one.op.kind) ? 20 : 0;
  });
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  EXPECT_EQ(count_pauses(steps), 0);
  const CauseReport report = find_causes(steps);
  const Cause* launch = find_cause(report, CauseKind::kLaunch);
  ASSERT_NE(launch, nullptr);
  EXPECT_EQ(std::get<LateLaunches>(launch->facts).rank, 2);
  EXPECT_EQ(launch->saves, compute_makespan(timeline) - 3300);
  EXPECT_EQ(find_cause(report, CauseKind::kPause), nullptr);
}

// 2B3 takes 5 times as long in one of four steps: 800 more, of which the mean step has a quarter.
TEST(Causes, ASingleLongOpIsAPause) {
  const RecordedStep step = recorded();
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < durations.size(); ++id)
    if (is_op(step.program.instructions[id], "2B3")) durations[id] *= 5;
  const Timeline slow = simulate(step.program, durations);
  const std::vector<ReplicatedStep> steps{{{step.program, step.timeline}},
                                          {{step.program, slow}},
                                          {{step.program, step.timeline}},
                                          {{step.program, step.timeline}}};
  const CauseReport report = find_causes(steps);
  const Cause* pause = find_cause(report, CauseKind::kPause);
  ASSERT_NE(pause, nullptr);
  const auto& ops = std::get<InterruptedOps>(pause->facts);
  EXPECT_EQ(ops.count, 1);
  EXPECT_DOUBLE_EQ(ops.factor, 5);
  EXPECT_EQ(pause->saves, (compute_makespan(slow) - 3300) / 4);
}

/// Steps of two replicas whose ops take 1.8 times as long where is_long(step, replica, op) says so.
class InterruptedSteps {
 public:
  template <class IsLong>
  explicit InterruptedSteps(IsLong is_long) : step_(recorded()) {
    for (std::size_t number = 0; number < 8; ++number)
      for (std::size_t replica = 0; replica < 2; ++replica) {
        std::vector<Nanos> durations = collect_durations(step_.timeline);
        for (InstructionId id = 0; id < durations.size(); ++id)
          if (is_long(number, replica, step_.program.instructions[id].op))
            durations[id] = durations[id] * 9 / 5;
        timelines_.push_back(simulate(step_.program, durations));
        if (replica == 0) steps_.emplace_back();
        steps_.back().push_back({step_.program, timelines_.back()});
      }
  }

  CauseReport causes() const { return find_causes(steps_); }
  Nanos uninterrupted() const { return compute_makespan(step_.timeline); }

 private:
  RecordedStep step_;
  std::list<Timeline> timelines_;
  std::vector<ReplicatedStep> steps_;
};

/// True for one in `each` of the numbers, without a pattern.
bool strikes(std::size_t number, std::size_t each = 9) {
  return number * 2654435761U % 1'000'003 < 1'000'003 / each;
}

// A ninth of the ops of all ranks are interrupted: without that all steps are alike.
TEST(Causes, ManyScatteredLongOpsArePauses) {
  const InterruptedSteps steps([](std::size_t step, std::size_t replica, const Op& op) {
    const std::size_t place = (step * 2 + replica) * 4 + static_cast<std::size_t>(op.stage);
    return strikes((place * 8 + static_cast<std::size_t>(op.microbatch)) * 2 +
                   (op.kind == OpKind::kForward ? 0 : 1));
  });
  const CauseReport report = steps.causes();
  const Cause* const pause = find_cause(report, CauseKind::kPause);
  ASSERT_NE(pause, nullptr);
  EXPECT_NEAR(std::get<InterruptedOps>(pause->facts).factor, 1.8, 0.01);
  EXPECT_EQ(report.replayed - pause->saves, steps.uninterrupted());
  EXPECT_EQ(find_cause(report, CauseKind::kVariation), nullptr);
}

// A fifth of them are too many for a cause, but they are named. A ninth are a cause.
TEST(Causes, TooManyScatteredLongOpsAreNamed) {
  const auto interrupt = [](std::size_t each) {
    return InterruptedSteps([each](std::size_t step, std::size_t replica, const Op& op) {
             const std::size_t place =
                 (step * 2 + replica) * 4 + static_cast<std::size_t>(op.stage);
             return strikes((place * 8 + static_cast<std::size_t>(op.microbatch)) * 2 +
                                (op.kind == OpKind::kForward ? 0 : 1),
                            each);
           })
        .causes();
  };
  const CauseReport many = interrupt(5);
  ASSERT_TRUE(many.many_long_ops);
  EXPECT_NEAR(many.many_long_ops->fraction, 0.2, 0.03);
  EXPECT_NEAR(many.many_long_ops->factor, 1.8, 0.1);
  EXPECT_FALSE(interrupt(9).many_long_ops);
}

// Where forwards and backwards are long together, or the same ops in all steps, they have more
// work, which no one can take away.
TEST(Causes, LongOpsThatHaveMoreWorkAreNoPauses) {
  const InterruptedSteps together([](std::size_t step, std::size_t replica, const Op& op) {
    const std::size_t place = (step * 2 + replica) * 4 + static_cast<std::size_t>(op.stage);
    return strikes(place * 8 + static_cast<std::size_t>(op.microbatch));
  });
  EXPECT_EQ(find_cause(together.causes(), CauseKind::kPause), nullptr);
  const InterruptedSteps always([](std::size_t, std::size_t, const Op& op) {
    return strikes(static_cast<std::size_t>(op.stage * 8 + op.microbatch) * 2 +
                   (op.kind == OpKind::kForward ? 0 : 1));
  });
  EXPECT_EQ(find_cause(always.causes(), CauseKind::kPause), nullptr);
}

// Four steps of 3300, then four that take 10 % longer: the mean step is 165 shorter without that.
TEST(Causes, ALastingChangeOfSpeedIsADrift) {
  const RecordedStep step = recorded();
  std::list<Timeline> timelines;
  std::vector<ReplicatedStep> steps;
  for (int at = 0; at < 8; ++at) {
    std::vector<Nanos> durations = collect_durations(step.timeline);
    for (Nanos& duration : durations) duration = at < 4 ? duration : duration / 10 * 11;
    timelines.push_back(simulate(step.program, durations));
    steps.push_back({{step.program, timelines.back()}});
  }
  const CauseReport report = find_causes(steps);
  const Cause* drift = find_cause(report, CauseKind::kDrift);
  ASSERT_NE(drift, nullptr);
  const auto& ops = std::get<SlowerOps>(drift->facts);
  EXPECT_EQ(ops.steps, 4);
  EXPECT_NEAR(ops.factor, 1.1, 1e-9);
  EXPECT_NEAR(static_cast<double>(drift->saves), 165, 1);
}

}  // namespace
}  // namespace bubblescope::tests
