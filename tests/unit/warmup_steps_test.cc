// First steps that are longer than the others, and the time between steps.
#include "traces/measured/warmup_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/analysis/cause.h"
#include "tests/support/recorded_step.h"
#include "tools/commands/analyze_job.h"
#include "traces/measured/growing_steps.h"
#include "traces/reports/between_steps.h"

namespace bubblescope::tests {
namespace {

/// Steps that take so many times as long as the last one, 1000 apart.
traces::AssembledSteps read(const std::vector<Nanos>& factors) {
  traces::AssembledSteps read;
  Nanos begin = 0;
  for (const Nanos factor : factors) {
    UniformCost cost;
    cost.forward = 100'000 * factor;
    cost.backward = 100'000 * factor;
    RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2}, cost);
    const Nanos makespan = step.report.makespan;
    traces::MeasuredStep measured{"", step.schedule, step.program, step.timeline};
    measured.number = static_cast<std::int64_t>(read.steps.size());
    measured.begin = begin;
    read.steps.push_back(std::move(measured));
    begin += makespan + 1'000;
  }
  return read;
}

TEST(WarmupSteps, AreLeftOutAndNamed) {
  const traces::AssembledSteps kept = traces::separate_warmup_steps(read({3, 2, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(kept.steps.size(), 6u);
  ASSERT_EQ(kept.remarks.left_out.size(), 1u);
  EXPECT_NE(kept.remarks.left_out.front().find("steps 0, 1"), std::string::npos)
      << kept.remarks.left_out.front();
}

// A later step may be long for any reason, and of three steps the first may be as usual as others.
TEST(WarmupSteps, OthersStay) {
  EXPECT_EQ(traces::separate_warmup_steps(read({1, 3, 1, 1, 1})).steps.size(), 5u);
  EXPECT_EQ(traces::separate_warmup_steps(read({3, 1, 1})).steps.size(), 3u);
}

// A collective sets itself up in the first step.
TEST(WarmupSteps, TheirCommunicationIsLeftOutAsWell) {
  traces::AssembledSteps given = read({3, 1, 1, 1, 1, 1});
  for (const traces::MeasuredStep& step : given.steps) {
    const Nanos makespan = compute_makespan(step.timeline);
    const Nanos reduction = step.number == 0 ? 90'000'000 : 200'000;
    given.whole_steps.push_back(
        {step.number, makespan + reduction, makespan, {{"AllReduce", reduction}}});
    for (const std::int32_t recorder : {0, 1})
      given.activities.push_back({.name = "AllReduce",
                                  .recorder = recorder,
                                  .step = step.number,
                                  .start = makespan,
                                  .end = makespan + reduction});
  }
  const tools::Analysis analysis =
      tools::analyze_steps(traces::separate_warmup_steps(std::move(given)), {}, {});
  ASSERT_TRUE(analysis.iterations.causes);
  const std::vector<Cause>& causes = analysis.iterations.causes->causes;
  const auto reduction = std::find_if(causes.begin(), causes.end(), [](const Cause& cause) {
    const auto* const collective = std::get_if<ExposedCollective>(&cause.facts);
    return collective != nullptr && collective->name == "AllReduce";
  });
  ASSERT_NE(reduction, causes.end());
  EXPECT_EQ(reduction->saves, 200'000);
}

/// The sentence on the last of steps that take so many times as long.
std::string growth_of(const std::vector<Nanos>& factors) {
  return traces::describe_growing_steps(read(factors).steps).value_or("");
}

// The median step takes 100; the last three of ten grow to 120.
TEST(GrowingSteps, AtTheEndAreNamed) {
  const std::string text = growth_of({100, 100, 102, 100, 99, 100, 100, 105, 110, 120});
  EXPECT_TRUE(text.starts_with("the last 3 steps grow from one to the next: step 9 takes "))
      << text;
  EXPECT_NE(text.find(", 1.20 times the median step;"), std::string::npos) << text;
}

// Two may be by chance, a little is noise, and steps that were as long before do not grow.
TEST(GrowingSteps, AreNotThoseThatVary) {
  EXPECT_EQ(growth_of({101, 100, 102, 100, 99, 100, 101, 100, 110, 120}), "");
  EXPECT_EQ(growth_of({101, 100, 102, 100, 99, 100, 101, 103, 104, 105}), "");
  EXPECT_EQ(growth_of({101, 100, 130, 100, 99, 100, 101, 105, 110, 120}), "");
  EXPECT_EQ(growth_of({100, 100, 105, 110, 120}), "");
}

// A run that grows from its first step on is named by its second half.
TEST(GrowingSteps, AreAtMostHalfOfAll) {
  EXPECT_TRUE(growth_of({100, 110, 120, 130, 140, 150, 160, 170}).starts_with("the last 4 steps"));
}

TEST(WarmupSteps, TheTimeBetweenStepsIsMeasured) {
  const std::optional<traces::BetweenSteps> between =
      traces::measure_between_steps(read({1, 1, 2}).steps);
  ASSERT_TRUE(between);
  EXPECT_EQ(between->mean, 1'000);
  EXPECT_EQ(between->longest, 1'000);
  EXPECT_FALSE(traces::measure_between_steps(read({1}).steps));
}

TEST(WarmupSteps, ThePauseBetweenTwoStepsIsFound) {
  traces::AssembledSteps paused = read({1, 1, 1, 1});
  *paused.steps.at(2).begin += 50'000;
  *paused.steps.at(3).begin += 50'000;
  const std::optional<traces::BetweenSteps> between = traces::measure_between_steps(paused.steps);
  ASSERT_TRUE(between);
  EXPECT_EQ(between->median, 1'000);
  EXPECT_EQ(between->longest, 51'000);
  EXPECT_EQ(between->longest_after, 1);
}

}  // namespace
}  // namespace bubblescope::tests
