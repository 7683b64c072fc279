// Tests means, medians and replays of steps whose answers are known.
#include "sim/analysis/stragglers.h"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/analysis/analyze.h"
#include "sim/analysis/mean_report.h"
#include "sim/analysis/replay.h"
#include "sim/engine/simulate.h"
#include "tests/support/as_written.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// 1F1B with p = 4, m = 8, F = 10, B = 20, in which rank `slow` takes `factor` times as long.
RecordedStep with_slow_rank(std::int32_t slow, Nanos factor = 2) {
  UniformCost cost;
  cost.forward = 10;
  cost.backward = 20;
  RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 8}, cost);
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (step.program.instructions[id].rank == slow) durations[id] *= factor;
  step.timeline = simulate(step.program, durations);
  step.report = analyze(step.schedule, step.program, step.timeline);
  return step;
}

TEST(Stragglers, NamesTheSlowStage) {
  const RecordedStep step = with_slow_rank(2);
  const std::vector<ObservedStep> observed{{step.program, step.timeline}};
  const StragglerReport report = find_stragglers(observed);
  ASSERT_EQ(report.stages.size(), 8u);  // forwards and backwards of 4 stages
  for (const StageSpeed& speed : report.stages)
    EXPECT_DOUBLE_EQ(speed.slowness(), speed.stage == 2 ? 2.0 : 1.0) << speed.stage;
}

TEST(Stragglers, NamesTheSlowOp) {
  RecordedStep step = with_slow_rank(0, 1);
  std::vector<Nanos> durations = collect_durations(step.timeline);
  for (InstructionId id = 0; id < step.program.size(); ++id)
    if (step.program.instructions[id].op == backward(3, 5)) durations[id] += 100;
  step.timeline = simulate(step.program, durations);
  const std::vector<ObservedStep> observed{{step.program, step.timeline}};
  const StragglerReport report = find_stragglers(observed);
  ASSERT_EQ(report.outliers.size(), 1u);
  EXPECT_EQ(report.outliers[0].op, backward(3, 5));
  EXPECT_EQ(report.outliers[0].duration, 120);
  EXPECT_EQ(report.outliers[0].median, 20);
}

TEST(Replay, OfASimulationIsExact) {
  const RecordedStep step = with_slow_rank(1);
  EXPECT_EQ(replay(step.program, step.timeline).end, step.timeline.end);
  EXPECT_EQ(replay_error(step.program, step.timeline), 0);
}

TEST(MeanReport, AddsUpOnEveryRank) {
  const std::vector<BubbleReport> reports{with_slow_rank(0).report, with_slow_rank(1).report,
                                          with_slow_rank(3, 3).report};
  const BubbleReport mean = average_reports(reports);
  EXPECT_EQ(mean.makespan,
            (reports[0].makespan + reports[1].makespan + reports[2].makespan + 1) / 3);
  for (const RankReport& rank : mean.ranks) {
    EXPECT_EQ(rank.busy + rank.idle, mean.makespan);
    EXPECT_EQ(std::accumulate(rank.busy_by_kind.begin(), rank.busy_by_kind.end(), Nanos{0}),
              rank.busy);
    EXPECT_EQ(std::accumulate(rank.idle_by_cause.begin(), rank.idle_by_cause.end(), Nanos{0}),
              rank.idle);
  }
}

TEST(MeanReport, OfOneIsThatOne) {
  const BubbleReport report = with_slow_rank(2).report;
  const BubbleReport mean = average_reports(std::vector<BubbleReport>{report});
  EXPECT_EQ(mean.makespan, report.makespan);
  EXPECT_EQ(mean.bubble->ratio, report.bubble->ratio);
  EXPECT_EQ(mean.critical_path, report.critical_path);
  EXPECT_EQ(mean.ranks[1].idle_by_cause, report.ranks[1].idle_by_cause);
}

}  // namespace
}  // namespace bubblescope::tests
