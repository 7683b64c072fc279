// The conditions under which a report on measured steps is trusted.
#include "traces/trust.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace bubblescope {
namespace {

BubbleReport report_of(Nanos makespan, Nanos bound) {
  BubbleReport report;
  report.makespan = makespan;
  report.lower_bound = bound;
  return report;
}

TEST(Trust, StandsUnderFivePercentOfReplayError) {
  const Trust trust = judge_trust(report_of(100, 90), {{0.01, 0.049, 0.0}, {}, {}});
  EXPECT_EQ(trust.verdict, Verdict::kGood);
  EXPECT_EQ(trust.replay_error, 0.01);
  EXPECT_EQ(trust_text(trust), "");
}

TEST(Trust, IsNoneWhereAReplayMissesTheStep) {
  const Trust trust = judge_trust(report_of(100, 90), {{0.06}, {"a doubt"}, {}});
  EXPECT_EQ(trust.verdict, Verdict::kNone);
  ASSERT_EQ(trust.why.size(), 2u);
  EXPECT_NE(trust.why[0].find("6.0 %"), std::string::npos) << trust.why[0];
  EXPECT_TRUE(trust_text(trust).starts_with("not trusted"));
}

TEST(Trust, IsNoneWhereTheBoundIsAboveTheMakespan) {
  EXPECT_EQ(judge_trust(report_of(100, 101), {{0.0}, {}, {}}).verdict, Verdict::kNone);
  EXPECT_EQ(judge_trust(report_of(100, 100), {{0.0}, {}, {}}).verdict, Verdict::kGood);
}

TEST(Trust, IsLimitedByDoubtsAndByAFewBadSteps) {
  EXPECT_EQ(judge_trust(report_of(100, 90), {{0.0}, {"a doubt"}, {}}).verdict, Verdict::kLimited);
  EXPECT_EQ(judge_trust(report_of(100, 90), {{0.0, 0.0, 0.2}, {}, {}}).verdict, Verdict::kLimited);
}

TEST(Trust, WithoutItAReportHasNoConclusions) {
  const nlohmann::json report = nlohmann::json::parse(without_conclusions(
      R"({"makespan_ns":5,"bubble":{"ratio":0.3},"lower_bound_ns":4,"critical_path":[1],
          "ranks":[{"busy_ns":3,"idle_by_cause_ns":{"drain":1}}],
          "per_iteration":[{"makespan_ns":5,"bubble_ratio":0.3}],"stragglers":{}})"));
  EXPECT_TRUE(report["bubble"].is_null());
  EXPECT_TRUE(report["lower_bound_ns"].is_null());
  EXPECT_TRUE(report["stragglers"].is_null());
  EXPECT_TRUE(report["ranks"][0]["idle_by_cause_ns"].is_null());
  EXPECT_EQ(report["makespan_ns"], 5);
}

}  // namespace
}  // namespace bubblescope
