// Profiles of PyTorch in which nothing marks the steps.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/ir/timeline.h"
#include "tests/support/find_text.h"
#include "tests/support/rank_profile.h"
#include "tests/support/trace_refusal.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr int kStep = 600;  ///< µs from the first op of a step to the last

/// The ops of a step of two ranks and one micro-batch, which begins at `start`: F takes 100 µs, B
/// 200.
RankProfile& add_step(RankProfile& profile, int rank, int start) {
  const std::string stage = "PP:" + std::to_string(rank);
  const int forward = start + (rank == 0 ? 0 : 100);
  const int backward = start + (rank == 0 ? 400 : 200);
  return profile.annotation(stage + "F0", forward, 100)
      .call("aten::mm", forward, 100)
      .annotation(stage + "B0", backward, 200)
      .gradient(backward, 200);
}

traces::AssembledSteps assemble(RankProfile& first, RankProfile& second) {
  traces::ObservedTrace trace;
  traces::append(trace, first.read());
  traces::append(trace, second.read());
  return traces::assemble_steps(std::move(trace));
}

/// One step: rank 0 begins 10 µs before its first op, and ends 60 µs after the last.
class UnmarkedSteps : public testing::Test {
 protected:
  UnmarkedSteps() {
    first_.annotation("Optimizer.zero_grad#SGD.zero_grad", 990, 5);
    add_step(first_, 0, 1000).annotation("Optimizer.step#SGD.step", 1610, 50);
    add_step(second_, 1, 1000);
  }

  Nanos whole() {
    const traces::AssembledSteps read = assemble(first_, second_);
    return read.whole_steps.size() == 1 ? read.whole_steps[0].whole : 0;
  }

  RankProfile first_{0};
  RankProfile second_{1};
};

// Rank 1 has ended the step before long ago, and waits for its first input.
TEST_F(UnmarkedSteps, AreNoLongerWhereARankWaitsBefore) {
  second_.annotation("Optimizer.zero_grad#SGD.zero_grad", 600, 5).annotation("gloo:recv", 610, 489);
  EXPECT_EQ(whole(), 670'000);
}

// Work is part of the step, whenever the rank then waits.
TEST_F(UnmarkedSteps, AreLongerByTheWorkOfARankThatWaits) {
  second_.annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 600, 200);
  EXPECT_EQ(whole(), 860'000);
}

// The last rank has an optimizer that outlasts all, although its first op begins late.
TEST_F(UnmarkedSteps, EndWithTheLastWorkOfAnyRank) {
  second_.annotation("Optimizer.step#SGD.step", 1600, 200);
  EXPECT_EQ(whole(), 810'000);
}

// Gradients are cleared after the next step's samples are loaded.
TEST(ProfileSteps, BeginWithLoadingData) {
  RankProfile profile(0, 1);
  for (const int start : {1000, 2000}) {
    profile.annotation("dataloader", start - 100, 80);
    profile.annotation("Optimizer.zero_grad#SGD.zero_grad", start - 10, 5);
    profile.annotation("PP:0F0", start, 100).call("aten::mm", start, 100);
    profile.annotation("PP:0B0", start + 100, 200).gradient(start + 100, 200);
    profile.annotation("optimizer_step", start + 310, 40);
  }
  const traces::AssembledSteps read = traces::assemble_steps(profile.read());
  ASSERT_EQ(read.whole_steps.size(), 2u);
  for (const traces::WholeStep& step : read.whole_steps) EXPECT_EQ(step.whole, 450'000);
}

// Rank 1 leaves the first step 200 µs before rank 0, the second one 50 µs before it: its second
// mark holds 150 µs in which the first step was not over. Both steps end with rank 0, which takes
// 800 and 1000 µs.
TEST(ProfileSteps, LastFromTheLastRankThatEntersToTheLastThatLeaves) {
  RankProfile first(0);
  first.annotation("ProfilerStep#1", 900, 800).annotation("ProfilerStep#2", 1700, 1000);
  RankProfile second(1);
  second.annotation("ProfilerStep#1", 800, 700).annotation("ProfilerStep#2", 1500, 1150);
  for (const int start : {1000, 1750}) {
    add_step(first, 0, start);
    add_step(second, 1, start);
  }
  const traces::AssembledSteps read = assemble(first, second);
  ASSERT_EQ(read.whole_steps.size(), 2u);
  EXPECT_EQ(read.whole_steps[0].whole, 800'000);
  EXPECT_EQ(read.whole_steps[1].whole, 1'000'000);
}

// Nothing tells what a rank waited for in steps that the other one did not record.
TEST(ProfileSteps, AreRefusedWhereRanksRecordedOthers) {
  RankProfile first(0);
  add_step(first.annotation("ProfilerStep#1", 900, 800), 0, 1000);
  RankProfile second(1);
  add_step(second.annotation("ProfilerStep#4", 3900, 800), 1, 4000);
  traces::ObservedTrace trace;
  traces::append(trace, first.read());
  traces::append(trace, second.read());
  const std::string text = refusal(std::move(trace));
  EXPECT_NE(text.find("no step was recorded on all ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("has step 1"), std::string::npos) << text;
  EXPECT_NE(text.find("has step 4"), std::string::npos) << text;
}

// Rank 1 began to record one step later; both are of one host.
TEST(ProfileSteps, AreCountedOverAllRanks) {
  RankProfile first(0);
  RankProfile second(1);
  for (const int number : {0, 1, 2, 3}) {
    add_step(first, 0, 1000 + 700 * number);
    if (number > 0) add_step(second, 1, 1000 + 700 * number);
  }
  const traces::AssembledSteps read = assemble(first, second);
  ASSERT_EQ(read.steps.size(), 3u);
  for (const traces::MeasuredStep& step : read.steps) {
    EXPECT_EQ(compute_makespan(step.timeline), kStep * 1'000);
    EXPECT_TRUE(step.missing_ranks.empty());
  }
  EXPECT_TRUE(read.remarks.faults.empty());
}

// PyTorch's schedules run the backwards of an evaluation as well, without computing any: they wait
// for nothing.
TEST(ProfileSteps, AreNotThoseOfAnEvaluation) {
  RankProfile first(0);
  RankProfile second(1);
  for (const int start : {1000, 3000, 5000}) {
    add_step(first, 0, start);
    add_step(second, 1, start);
    if (start == 5000) continue;
    first.annotation("PP:0F0", start + 700, 300).call("aten::mm", start + 700, 300);
    first.annotation("PP:0B0", start + 1001, 1);
    second.annotation("PP:1F0", start + 1000, 300).call("aten::mm", start + 1000, 300);
    second.annotation("PP:1B0", start + 1301, 1);
  }
  const traces::AssembledSteps read = assemble(first, second);
  ASSERT_EQ(read.steps.size(), 3u);
  for (const traces::MeasuredStep& step : read.steps)
    EXPECT_EQ(compute_makespan(step.timeline), kStep * 1'000);
  EXPECT_TRUE(mentions(read.remarks.left_out, "left out: steps 1, 3, as evaluations"));
  EXPECT_TRUE(read.remarks.faults.empty());
  EXPECT_TRUE(read.remarks.doubts.empty());
}

// Rank 1 is of a run that began 10 s later.
TEST(ProfileSteps, OfTwoRunsAreNamed) {
  RankProfile first(0);
  RankProfile second(1);
  add_step(first, 0, 1000);
  add_step(second, 1, 10'001'000);
  const traces::AssembledSteps read = assemble(first, second);
  EXPECT_TRUE(mentions(read.remarks.doubts, "the traces are of two runs"));
}

// The host posts a message for 50 of 600 ms.
TEST(ProfileSteps, TimeOfCallsThatPostIsNamed) {
  RankProfile profile(0);
  profile.annotation("PP:0F0", 1'000, 100'000).call("aten::mm", 1'000, 100'000);
  profile.call("c10d::send", 101'000, 50'000);
  profile.annotation("PP:0B0", 401'000, 200'000).gradient(401'000, 200'000);
  const traces::ObservedTrace trace = profile.read();
  ASSERT_EQ(trace.remarks.lost.size(), 1u);
  EXPECT_NEAR(trace.remarks.lost[0].share, 50.0 / 600, 1e-3);
  EXPECT_NE(trace.remarks.lost[0].text.find("up to 50 ms), together 8.3 %"), std::string::npos)
      << trace.remarks.lost[0].text;
}

// Up to 2.8 the runtime waits for the input of 0B0 before 0F1 has its turn.
TEST(ProfileSteps, ReceivesForLaterOpsAreNamed) {
  RankProfile profile(0);
  profile.annotation("PP:0F0", 1'000, 100'000).call("aten::mm", 1'000, 100'000);
  profile.annotation("gloo:recv", 101'000, 300'000);
  profile.annotation("PP:0F1", 401'000, 100'000).call("aten::mm", 401'000, 100'000);
  profile.annotation("PP:0B0", 501'000, 200'000).gradient(501'000, 200'000);
  profile.annotation("PP:0B1", 701'000, 200'000).gradient(701'000, 200'000);
  const traces::ObservedTrace trace = profile.read();
  ASSERT_EQ(trace.remarks.lost.size(), 1u);
  EXPECT_NEAR(trace.remarks.lost[0].share, 300.0 / 900, 1e-3);
}

}  // namespace
}  // namespace bubblescope::tests
