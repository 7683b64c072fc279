// The conditions under which a report on measured steps is trusted.
#include "traces/measured/trust.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/analysis/conclusions.h"
#include "tests/support/recorded_step.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/reports/text_report.h"

namespace bubblescope::tests {
namespace {

BubbleReport report_of(Nanos makespan, Nanos bound) {
  BubbleReport report;
  report.makespan = makespan;
  report.lower_bound = bound;
  return report;
}

TEST(Trust, StandsUnderFivePercentOfReplayError) {
  const traces::Trust trust =
      traces::judge_trust(report_of(100, 90), {{0.01, 0.049, 0.0}, {}, {}, {}});
  EXPECT_EQ(trust.verdict, traces::Verdict::kGood);
  EXPECT_EQ(trust.replay_error, 0.01);
  EXPECT_EQ(traces::write_trust_text(trust), "");
}

TEST(Trust, IsNoneWhereAReplayMissesTheStep) {
  const traces::Trust trust =
      traces::judge_trust(report_of(100, 90), {{0.06}, {}, {"a doubt"}, {}});
  EXPECT_EQ(trust.verdict, traces::Verdict::kNone);
  ASSERT_EQ(trust.why.size(), 2u);
  EXPECT_NE(trust.why[0].find("6.0 %"), std::string::npos) << trust.why[0];
  EXPECT_TRUE(traces::write_trust_text(trust).starts_with("not trusted"));
}

// Time that no op stands for explains what a replay misses; where it misses nothing, it is no
// reservation.
TEST(Trust, NamesLostTimeWhereAReplayMissesTheStep) {
  traces::TrustEvidence evidence{{0.06}, {}, {}, {}, false, {{0.1, "a"}, {0.3, "b"}, {0.2, "c"}}};
  traces::Trust trust = traces::judge_trust(report_of(100, 90), evidence);
  ASSERT_EQ(trust.why.size(), 3u);
  EXPECT_EQ(trust.why[1], "b");
  EXPECT_EQ(trust.why[2], "c");
  evidence.replay_errors = {0.01};
  trust = traces::judge_trust(report_of(100, 90), evidence);
  EXPECT_EQ(trust.verdict, traces::Verdict::kGood);
  EXPECT_TRUE(trust.why.empty());
}

// A gap has one reason: what is known of it takes the place of a guess.
TEST(Trust, NamesLostTimeAsTheReasonOfGaps) {
  traces::TrustEvidence evidence{{0.01}, {0.15, 0}, {}, {}, false, {{0.14, "data is loaded"}}};
  traces::Trust trust = traces::judge_trust(report_of(100, 90), evidence);
  ASSERT_EQ(trust.why.size(), 2u);
  EXPECT_TRUE(trust.why[0].ends_with("although its next op has its input")) << trust.why[0];
  EXPECT_EQ(trust.why[1], "data is loaded");
  evidence.lost[0].share = 0.02;  // of 15 %
  trust = traces::judge_trust(report_of(100, 90), evidence);
  EXPECT_NE(trust.why.at(0).find("ops or messages are missing"), std::string::npos) << trust.why[0];
}

// Every file of a job may have the same fault.
TEST(Trust, StatesAFaultOnce) {
  const traces::Trust trust =
      traces::judge_trust(report_of(100, 90), {{0.01}, {}, {}, {"a", "b", "a"}});
  EXPECT_EQ(trust.why, (std::vector<std::string>{"a", "b"}));
}

TEST(Trust, IsNoneWhereTheBoundIsAboveTheMakespan) {
  EXPECT_EQ(traces::judge_trust(report_of(100, 101), {{0.0}, {}, {}, {}}).verdict,
            traces::Verdict::kNone);
  EXPECT_EQ(traces::judge_trust(report_of(100, 100), {{0.0}, {}, {}, {}}).verdict,
            traces::Verdict::kGood);
}

TEST(Trust, IsLimitedByDoubtsAndByAFewBadSteps) {
  EXPECT_EQ(traces::judge_trust(report_of(100, 90), {{0.0}, {}, {"a doubt"}, {}}).verdict,
            traces::Verdict::kLimited);
  EXPECT_EQ(traces::judge_trust(report_of(100, 90), {{0.0, 0.0, 0.2}, {}, {}, {}}).verdict,
            traces::Verdict::kLimited);
}

// A step with ten times the usual error holds something that the trace does not show.
TEST(Trust, IsLimitedByStepsThatAreUnlikeTheOthers) {
  const traces::Trust trust = traces::judge_trust(report_of(100, 90), {{0.001, 0.04}, {}, {}, {}});
  EXPECT_EQ(trust.verdict, traces::Verdict::kLimited);
  EXPECT_NE(trust.why.at(0).find("by 4.0 %, but usually by 0.1 %"), std::string::npos)
      << trust.why[0];
  EXPECT_EQ(traces::judge_trust(report_of(100, 90), {{0.0001, 0.008}, {}, {}, {}}).verdict,
            traces::Verdict::kGood);
}

TEST(Trust, IsLimitedByARankThatStandsStill) {
  const traces::Trust trust =
      traces::judge_trust(report_of(100, 90), {{0.001}, {0.01, 0.051}, {}, {}});
  EXPECT_EQ(trust.verdict, traces::Verdict::kLimited);
  EXPECT_NE(trust.why.at(0).find("rank 1 is idle for 5.1 %"), std::string::npos) << trust.why[0];
  EXPECT_EQ(traces::judge_trust(report_of(100, 90), {{0.001}, {0.01, 0.049}, {}, {}}).verdict,
            traces::Verdict::kGood);
}

/// A report without conclusions in every format that shows one.
class WithoutConclusions : public testing::Test {
 protected:
  WithoutConclusions()
      : step_(record_step("1f1b", {.ranks = 4, .microbatches = 8}, uneven_cost())) {
    step_.report = remove_conclusions(step_.report);
  }

  RecordedStep step_;
};

TEST_F(WithoutConclusions, AReportIsNotConclusive) {
  EXPECT_FALSE(is_conclusive(step_.report));
  EXPECT_TRUE(is_conclusive(record_step("gpipe", {.ranks = 2, .microbatches = 2}).report));
  EXPECT_GT(step_.report.makespan, 0);
  EXPECT_GT(step_.report.ranks[1].busy, 0);
}

TEST_F(WithoutConclusions, JsonHasNulls) {
  const nlohmann::json report =
      nlohmann::json::parse(traces::write_report_json(step_.report, step_.program, step_.timeline));
  for (const char* key : {"bubble", "lower_bound_ns", "critical_path"})
    EXPECT_TRUE(report.at(key).is_null()) << key;
  for (const nlohmann::json& rank : report["ranks"]) {
    EXPECT_TRUE(rank.at("idle_by_cause_ns").is_null());
    EXPECT_FALSE(rank.contains("max_slack_ns"));
  }
  EXPECT_EQ(report["makespan_ns"], step_.report.makespan);
}

TEST_F(WithoutConclusions, CsvHasBlanks) {
  const std::string csv = traces::write_report_csv(step_.report);
  const std::string row = csv.substr(csv.find('\n') + 1, csv.find('\n', csv.find('\n') + 1));
  EXPECT_NE(row.find(",,,,,,,\n"), std::string::npos) << csv;  // the seven causes
}

TEST_F(WithoutConclusions, TextSaysWhatWasSeenOnly) {
  const std::string text = traces::write_text_report(step_.record());
  EXPECT_EQ(text.find('\n') + 1, text.size()) << text;
  EXPECT_NE(text.find("of the ops that were seen"), std::string::npos);
}

TEST_F(WithoutConclusions, NoFormatShowsBubblesOrSlack) {
  for (const char* format : {"svg", "trace", "timeline", "perfetto", "dot"}) {
    const std::string text = write_as(format, step_);
    for (const char* said :
         {"bubble ratio", "bubble_ratio", "lower_bound_ns", "slack_ns\":", ", slack", "nan"})
      EXPECT_EQ(text.find(said), std::string::npos) << format << ": " << said;
  }
}

TEST_F(WithoutConclusions, ThePageKnowsIt) {
  const std::string page = write_as("html", step_);
  EXPECT_NE(page.find("\"isConclusive\":false"), std::string::npos);
  EXPECT_EQ(page.find("\"ratio\":"), std::string::npos);
  EXPECT_EQ(page.find("\"lowerBound\":"), std::string::npos);
}

// Causes and slowdown follow from a replay of whole steps, which must give the measured ones.
TEST(Trust, WholeStepsMustReplayAsMeasured) {
  EXPECT_FALSE(traces::doubt_whole_replay(100'000'000, 104'000'000));
  const auto doubt = traces::doubt_whole_replay(100'000'000, 120'000'000);
  ASSERT_TRUE(doubt);
  EXPECT_TRUE(doubt->starts_with("the whole steps took 100 ms in the mean, but")) << *doubt;
  EXPECT_NE(doubt->find("replay in 120 ms (+20.0 %)"), std::string::npos) << *doubt;
}

}  // namespace
}  // namespace bubblescope::tests
