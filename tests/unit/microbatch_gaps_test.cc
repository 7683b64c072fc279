// Tests that micro-batches without any op are told from numbers that skip some.
#include "traces/measured/microbatch_gaps.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/chrome_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// A step of two stages that run the forwards of these micro-batches, each of 10 us and
/// `distances` after the one before it. Stage 1 follows stage 0 by 10 us.
traces::StepOps run_forwards(const std::vector<std::int32_t>& microbatches,
                             const std::vector<Nanos>& distances) {
  traces::StepOps step;
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    Nanos start = 10 * stage;
    for (std::size_t at = 0; at < microbatches.size(); ++at) {
      traces::ObservedOp observed;
      observed.op = {stage, microbatches[at]};
      observed.recorder = stage;
      if (at > 0) start += distances[at - 1];
      observed.start = start;
      observed.end = start + 10;
      step.computes.push_back(observed);
    }
  }
  return step;
}

std::string missing_in(const traces::StepOps& step) {
  return traces::describe_missing_microbatches(step).value_or("");
}

// Between 1 and 3 all stages are idle for as long as a forward takes.
TEST(MicrobatchGaps, WithRoomAreMissingMicrobatches) {
  EXPECT_EQ(missing_in(run_forwards({0, 1, 3, 4}, {10, 20, 10})),
            "no rank has an op of micro-batch 2, though all have those before and after and were "
            "idle between them: its ops were lost on all ranks, or the numbers skip it; record all "
            "micro-batches, or number them without gaps");
  EXPECT_NE(missing_in(run_forwards({0, 3, 4}, {30, 10})).find("of micro-batches 1, 2, though"),
            std::string::npos);
}

TEST(MicrobatchGaps, WithoutRoomAreSkippedNumbers) {
  EXPECT_EQ(missing_in(run_forwards({0, 1, 3, 4}, {10, 10, 10})), "");
  // 4 us are less than half of a forward.
  EXPECT_EQ(missing_in(run_forwards({0, 1, 3, 4}, {10, 14, 10})), "");
  EXPECT_NE(missing_in(run_forwards({0, 1, 3, 4}, {10, 15, 10})), "");
}

// One stage without a pause is enough: stage 0 waits, and stage 1 has no time for micro-batch 2.
TEST(MicrobatchGaps, WithoutRoomOnOneStageAreSkippedNumbers) {
  traces::StepOps step = run_forwards({0, 1, 3, 4}, {10, 20, 10});
  for (traces::ObservedOp& observed : step.computes)
    if (observed.recorder == 1 && observed.op.microbatch == 1) observed.end += 10;
  EXPECT_EQ(missing_in(step), "");
}

// A backward fills the time between two forwards.
TEST(MicrobatchGaps, HaveNoRoomWhereTheRankComputesSomethingElse) {
  traces::StepOps step = run_forwards({0, 1, 3, 4}, {10, 20, 10});
  traces::ObservedOp backward = step.computes.front();
  backward.op.kind = OpKind::kBackward;
  backward.start = 20;
  backward.end = 30;
  step.computes.push_back(backward);
  EXPECT_EQ(missing_in(step), "");
}

TEST(MicrobatchGaps, AreNoneWhereverTheNumbersBegin) {
  EXPECT_EQ(missing_in(run_forwards({0, 1, 2}, {50, 50})), "");
  EXPECT_EQ(missing_in(run_forwards({8, 9, 10}, {50, 50})), "");
  EXPECT_EQ(missing_in(run_forwards({7}, {})), "");
}

// Replicas may share the numbers of a job: one has the even ones, some without a pause.
TEST(MicrobatchGaps, AreNoneWhereTheNumbersGoByAStride) {
  EXPECT_EQ(missing_in(run_forwards({0, 2, 4, 6}, {20, 10, 20})), "");
  EXPECT_NE(missing_in(run_forwards({0, 2, 6, 8}, {20, 20, 10})).find("micro-batch 4,"),
            std::string::npos);
  EXPECT_NE(
      missing_in(run_forwards({0, 2, 4, 6}, {20, 20, 20})).find("micro-batches 1, 3, 5, though"),
      std::string::npos);
}

// Two directions of a pipeline may number their micro-batches apart: no rank runs both 1 and 8.
TEST(MicrobatchGaps, AreNoneBetweenDirections) {
  traces::StepOps step = run_forwards({0, 1}, {30});
  const traces::StepOps other = run_forwards({8, 9}, {30});
  for (traces::ObservedOp observed : other.computes) {
    observed.recorder = 1 - observed.recorder;
    step.computes.push_back(observed);
  }
  EXPECT_EQ(missing_in(step), "");
}

TEST(MicrobatchGaps, AreNoneWhereOpsAreCounted) {
  traces::StepOps step = run_forwards({0, 1, 3, 4}, {10, 20, 10});
  for (traces::ObservedOp& observed : step.computes) observed.numbered = false;
  EXPECT_EQ(missing_in(step), "");
}

// The numbers need not be near each other, as those of samples in a set of data.
TEST(MicrobatchGaps, OfManyNumbersNameTheFirst) {
  const std::string text = missing_in(run_forwards({0, 2'000'000'000}, {2'000'000'000}));
  EXPECT_EQ(text, "");  // a billion forwards take longer
  EXPECT_NE(missing_in(run_forwards({0, 300, 600}, {9'000, 9'000})).find("1 to 299, 301 to 599"),
            std::string::npos);
}

// Whichever micro-batch all ranks lack, the report says so first; replays need not miss it.
TEST(MicrobatchGaps, LeaveNoConclusion) {
  for (int lost = 1; lost < 4; ++lost) {
    Events events;
    for (int rank = 0; rank < 2; ++rank)
      for (int microbatch = 0; microbatch < 5; ++microbatch) {
        if (microbatch == lost) continue;
        const std::string number = std::to_string(rank) + "F" + std::to_string(microbatch);
        events.slice(number, rank, 0, 10 * (microbatch + rank), 10);
      }
    const traces::AssembledSteps read =
        traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
    ASSERT_EQ(read.remarks.faults.size(), 1u) << lost;
    EXPECT_TRUE(read.remarks.faults.front().starts_with("no rank has an op of micro-batch " +
                                                        std::to_string(lost)))
        << read.remarks.faults.front();
  }
}

}  // namespace
}  // namespace bubblescope::tests
