// Arrivals: micro-batches that are not there when the step starts.
#include "sim/predict/arrivals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "sim/predict/predict.h"
#include "tests/support/error_text.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Config with_arrivals(std::vector<Nanos> arrivals) {
  Config config;
  UniformCost cost;
  cost.forward = 10;
  cost.backward = 20;
  config.costs = UniformCosts{cost};
  config.arrivals = std::move(arrivals);
  return config;
}

Nanos idle(const Prediction& step, std::size_t rank, IdleCause cause) {
  return step.report.ranks[rank].idle_by_cause[static_cast<std::size_t>(cause)];
}

// Rank 0: 0F0 5..15, then idle until 0F1 40..50. Rank 1: 1F0 15..25, 1B0 25..45, 1F1 50..60, 1B1
// 60..80. Rank 0: 0B0 50..70, 0B1 80..100.
TEST(Arrivals, DelayTheForwardsOfTheirMicrobatches) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1", "two");
  const Prediction step = predict(require_valid(schedule), with_arrivals({5, 40}));
  EXPECT_EQ(step.report.makespan, 100);
  EXPECT_EQ(idle(step, 0, IdleCause::kArrival), 5 + 25);
  EXPECT_EQ(idle(step, 1, IdleCause::kArrival), 0);
  for (const RankReport& rank : step.report.ranks) {
    Nanos sum = 0;
    for (const Nanos cause : rank.idle_by_cause) sum += cause;
    EXPECT_EQ(sum, rank.idle);
  }
}

TEST(Arrivals, AtTheStartChangeNothing) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Schedule schedule = random_schedule(seed);
    const auto microbatches = static_cast<std::size_t>(schedule.shape.microbatches);
    const Prediction usual = predict(require_valid(schedule), with_arrivals({}));
    const Prediction found =
        predict(require_valid(schedule), with_arrivals(std::vector<Nanos>(microbatches, 0)));
    EXPECT_EQ(found.timeline.start, usual.timeline.start);
    EXPECT_EQ(found.report.lower_bound, usual.report.lower_bound);
  }
}

// Every op starts where its rank and its inputs allow it, and no forward before it arrived.
TEST(Arrivals, ShiftAStepThatWaitsForAllOfThem) {
  std::mt19937 random(20261129);
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Schedule schedule = random_schedule(seed);
    std::vector<Nanos> arrivals;
    for (std::int32_t at = 0; at < schedule.shape.microbatches; ++at)
      arrivals.push_back(static_cast<Nanos>(random() % 80));
    const Prediction late = predict(require_valid(schedule), with_arrivals(arrivals));
    const Prediction usual = predict(require_valid(schedule), with_arrivals({}));
    const Nanos last = *std::max_element(arrivals.begin(), arrivals.end());
    ASSERT_LE(late.report.makespan, usual.report.makespan + last);
    ASSERT_GE(late.report.makespan, usual.report.makespan);
    ASSERT_LE(late.report.lower_bound, late.report.makespan) << "seed " << seed;
    ASSERT_GE(late.report.lower_bound, usual.report.lower_bound);
    for (InstructionId id = 0; id < late.program.size(); ++id) {
      const Op& op = late.program.instructions[id].op;
      if (op.kind == OpKind::kForward && schedule.is_first(op.stage)) {
        ASSERT_GE(late.timeline.start[id], arrivals[static_cast<std::size_t>(op.microbatch)]);
      }
    }
    const Prediction all =
        predict(require_valid(schedule), with_arrivals(std::vector<Nanos>(arrivals.size(), 70)));
    ASSERT_EQ(all.report.makespan, usual.report.makespan + 70) << "seed " << seed;
  }
}

// Stage 0: 0..10, 30..40. Stage 1: 10..20, 40..50. The second arrived at 30.
TEST(Arrivals, GiveTheTimeToFirstToken) {
  Schedule schedule = traces::parse_schedule_text("0F0 0F1 | 1F0 1F1", "serve");
  schedule.forward_only = true;
  const Prediction step = predict(require_valid(schedule), with_arrivals({0, 30}));
  ASSERT_TRUE(step.report.serving);
  EXPECT_EQ(step.report.serving->first_token, (std::vector<Nanos>{20, 20}));
  EXPECT_EQ(step.report.serving->first_token_p95, 20);
  EXPECT_DOUBLE_EQ(step.report.serving->microbatches_per_second, 2e9 / 50);
}

TEST(Arrivals, AreOnePerMicrobatch) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1", "two");
  EXPECT_EQ(error_of([&] {
              predict(require_valid(schedule), with_arrivals({1, 2, 3}));
            }),
            "`arrivals` has 3 times, but two has 2 micro-batches; give one for each");
}

}  // namespace
}  // namespace bubblescope::tests
