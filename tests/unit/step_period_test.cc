// Steps that overlap, and steps of several runs of the pipeline.
#include "traces/reports/step_period.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/recorded_step.h"
#include "traces/measured/runs_of_step.h"
#include "traces/reports/iterations.h"

namespace bubblescope::tests {
namespace {

traces::MeasuredStep measured(RecordedStep step) {
  return {"", std::move(step.schedule), std::move(step.program), std::move(step.timeline)};
}

/// Steps of 600 µs in each of which two ranks compute for 400, which begin at these times.
std::vector<traces::MeasuredStep> steps_at(const std::vector<Nanos>& begins) {
  UniformCost cost;
  cost.forward = 100'000;
  cost.backward = 100'000;
  std::vector<traces::MeasuredStep> steps;
  for (const Nanos begin : begins) {
    steps.push_back(measured(record_step("1f1b", {.ranks = 2, .microbatches = 2}, cost)));
    steps.back().number = static_cast<std::int64_t>(steps.size());
    steps.back().begin = begin;
  }
  return steps;
}

TEST(StepPeriod, IsShorterThanStepsThatOverlap) {
  const std::optional<traces::StepPeriod> period =
      traces::measure_step_period(steps_at({0, 550'000, 1'100'000}));
  ASSERT_TRUE(period);
  EXPECT_EQ(period->mean, 550'000);
  EXPECT_EQ(period->overlap, 50'000);
  EXPECT_NEAR(period->idle.value_or(0), 1 - 400.0 / 550, 1e-9);
  EXPECT_NE(traces::write_step_period_text(period).find("overlap by 50 us: one step every 550 us"),
            std::string::npos)
      << traces::write_step_period_text(period);
}

TEST(StepPeriod, IsNotToldWhereStepsAreApart) {
  const std::optional<traces::StepPeriod> period =
      traces::measure_step_period(steps_at({0, 700'000}));
  ASSERT_TRUE(period);
  EXPECT_EQ(period->mean, 700'000);
  EXPECT_EQ(period->overlap, 0);
  EXPECT_EQ(traces::write_step_period_text(period), "");
}

TEST(StepPeriod, NeedsStepsThatFollowEachOther) {
  EXPECT_FALSE(traces::measure_step_period(steps_at({0})));
  std::vector<traces::MeasuredStep> steps = steps_at({0, 550'000});
  steps.back().number = 7;
  EXPECT_FALSE(traces::measure_step_period(steps));
}

// Both ranks have no micro-batch in flight after two of four.
TEST(RunsOfStep, AreThoseBetweenWhichNothingIsInFlight) {
  const std::optional<std::string> text = traces::describe_runs_of_step(
      measured(record_text("0F0 0F1 0B0 0B1 0F2 0F3 0B2 0B3 | 1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3")));
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("each step has 2 runs of the pipeline of 2 micro-batches"))
      << *text;
}

TEST(RunsOfStep, AreOneInAUsualSchedule) {
  for (const char* const name : {"1f1b", "gpipe", "zb-h1"})
    EXPECT_FALSE(
        traces::describe_runs_of_step(measured(record_step(name, {.ranks = 2, .microbatches = 4}))))
        << name;
}

// The time beside the ops of the recorded ranks is not beside the pipeline.
TEST(WholeStepText, DoesNotPlaceOpsOfMissingRanksOutside) {
  traces::Iterations iterations;
  iterations.rows = {{"", 80'000'000, {}, 0}};
  iterations.whole_steps = {{0, 100'000'000, 80'000'000, {}}};
  EXPECT_NE(traces::write_whole_step_text(iterations)
                .find("outside the pipeline: 20 ms in which nothing was recorded"),
            std::string::npos);
  iterations.lacks_ranks = true;
  const std::string text = traces::write_whole_step_text(iterations);
  EXPECT_NE(text.find("20 ms in which the others may have run ops"), std::string::npos) << text;
  EXPECT_EQ(text.find("outside the pipeline"), std::string::npos) << text;
}

}  // namespace
}  // namespace bubblescope::tests
