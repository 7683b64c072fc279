// Tests the wording of compare --backend about noise.
#include <gtest/gtest.h>

#include "sim/ir/bytes_text.h"
#include "tools/commands/measured_spread.h"
#include "traces/schedules/infer_schedule.h"

namespace bubblescope::tests {
namespace {

tools::Comparison comparison_of(Nanos predicted, std::vector<Nanos> measured) {
  const ValidSchedule schedule = std::get<ValidSchedule>(validate_schedule(traces::infer_schedule(
      "one", {{Op{}}}, [](std::int32_t, std::size_t) { return std::string("here"); })));
  tools::Comparison comparison{"1f1b", tools::TimedStep{schedule},
                               tools::Measurement{tools::TimedStep{schedule}}};
  comparison.predicted.report.makespan = predicted;
  comparison.measured.makespans = std::move(measured);
  return comparison;
}

TEST(MeasuredOrder, SchedulesAreApartWhereTheMiddleHalvesOfTheirStepsAre) {
  const tools::StepSpread fast = tools::compute_spread({100, 101, 102, 103, 400});
  EXPECT_EQ(fast.median, 102);
  EXPECT_EQ(fast.max, 400);
  EXPECT_TRUE(tools::are_apart(fast, tools::compute_spread({110, 111, 112, 113, 114})));
  EXPECT_FALSE(tools::are_apart(fast, tools::compute_spread({102, 103, 104, 105, 106})));
}

TEST(MeasuredOrder, CountsOnlyPairsThatAreApart) {
  const Nanos ms = 1'000'000;
  std::vector<tools::Comparison> comparisons;
  comparisons.push_back(comparison_of(10 * ms, {10 * ms, 10 * ms, 11 * ms}));
  comparisons.push_back(comparison_of(12 * ms, {10 * ms, 11 * ms, 12 * ms}));
  comparisons.push_back(comparison_of(20 * ms, {19 * ms, 20 * ms, 21 * ms}));
  const tools::OrderAgreement agreement = tools::compute_order_agreement(comparisons);
  EXPECT_EQ(agreement.pairs, 3);
  EXPECT_EQ(agreement.counted, 2);
  EXPECT_EQ(agreement.tau, 1.0);
  const std::string warning = tools::describe_noise_problem(comparisons);
  EXPECT_NE(warning.find("1 of 3 pairs"), std::string::npos) << warning;
}

TEST(MeasuredOrder, WhatDriftsBetweenBlocksIsNotApart) {
  tools::Comparison steady = comparison_of(100, {100, 101, 102, 100, 101, 102});
  tools::Comparison moved = comparison_of(105, {105, 106, 107, 107, 108, 109});
  EXPECT_TRUE(tools::are_apart(tools::compute_spread(steady.measured),
                               tools::compute_spread(moved.measured)));
  steady.measured.first_block = 3;
  moved.measured.first_block = 3;
  EXPECT_EQ(tools::compute_spread(steady.measured).drift, 0);
  EXPECT_EQ(tools::compute_spread(moved.measured).drift, 2);
  EXPECT_TRUE(tools::are_apart(tools::compute_spread(steady.measured),
                               tools::compute_spread(moved.measured)));
  // The machine has become slower by more than what lies between the schedules.
  moved.measured.makespans = {105, 106, 107, 115, 116, 117};
  EXPECT_EQ(tools::compute_spread(moved.measured).drift, 10);
  EXPECT_FALSE(tools::are_apart(tools::compute_spread(steady.measured),
                                tools::compute_spread(moved.measured)));
}

TEST(MeasuredOrder, APredictionBetweenTheShortestAndTheLongestStepIsWithinTheSpread) {
  EXPECT_TRUE(tools::is_within_spread(comparison_of(100, {100, 101, 102})));
  EXPECT_TRUE(tools::is_within_spread(comparison_of(102, {100, 101, 102})));
  EXPECT_FALSE(tools::is_within_spread(comparison_of(99, {100, 101, 102})));
  EXPECT_FALSE(tools::is_within_spread(comparison_of(103, {100, 101, 102})));
}

TEST(MeasuredOrder, NothingIsReportedOfAQuietMachine) {
  EXPECT_EQ(tools::describe_noise_problem({comparison_of(100, {100, 101, 102})}), "");
  EXPECT_NE(tools::describe_noise_problem({comparison_of(100, {100, 101, 202})}), "");
}

// The quartiles do not count: one step in three may be the only slow one.
TEST(MeasuredOrder, StepsThatVaryAreCalledNoisy) {
  const Nanos ms = 1'000'000;
  const tools::StepSpread steady = tools::compute_spread({100 * ms, 105 * ms, 110 * ms});
  const tools::StepSpread varying = tools::compute_spread({100 * ms, 100 * ms, 111 * ms});
  EXPECT_EQ(tools::describe_noise(steady, 4, 4), "");
  EXPECT_TRUE(tools::describe_noise(varying, 4, 4)
                  .starts_with("noisy: steps took 100 ms to 111 ms; take the times below as "));
}

TEST(MeasuredOrder, RanksThatTakeTurnsOnCoresAreNamed) {
  const tools::StepSpread steady = tools::compute_spread({1'000'000});
  EXPECT_NE(tools::describe_noise(steady, 4, 2)
                .find("4 ranks, of which each needs a core, took "
                      "turns on 2; take"),
            std::string::npos);
  EXPECT_EQ(tools::describe_noise(steady, 0, 2), "");
}

TEST(BytesText, ShowsTheNumberInAUnitThatFits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(Bytes{12} << 20), "12.0 MiB");
  EXPECT_EQ(format_bytes((Bytes{79} << 30) + (Bytes{102} << 20)), "79.1 GiB");
  EXPECT_EQ(format_bytes(Bytes{3} << 40), "3.00 TiB");
  EXPECT_EQ(format_bytes(-2048), "-2.00 KiB");
  // The first amount is just above 9.995 GiB. The second is the smallest that is nearer to 10.1
  // than to 10.0 GiB.
  EXPECT_EQ(format_bytes(10'732'049'531), "10.00 GiB");
  EXPECT_EQ(format_bytes((Bytes{10} << 30) + 53'687'092), "10.1 GiB");
  EXPECT_EQ(gibibytes_text(10'732'049'531), "10.00");
  EXPECT_EQ(gibibytes_text(Bytes{1} << 29), "0.50");
  EXPECT_EQ(gibibytes_text(-(Bytes{12} << 30)), "-12.0");
  EXPECT_EQ(gibibytes_text(Bytes{2} << 40), "2048.0");
}

}  // namespace
}  // namespace bubblescope::tests
