// Tests steps in which a schedule runs several times: their micro-batches are numbered on.
#include "traces/measured/accumulated_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "sim/ir/op.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// Two runs of a pipeline of two ranks and one micro-batch within a step of 1 ms.
RankProfile accumulating_rank(int rank) {
  RankProfile profile(rank);
  profile.annotation("ProfilerStep#1", 0, 1000);
  for (const int at : {0, 400})
    if (rank == 0)
      profile.annotation("PP:0F0", at + 10, 50)
          .call("aten::mm", at + 11, 40)
          .annotation("PP:0B0", at + 220, 100)
          .gradient(at + 221, 99);
    else
      profile.annotation("PP:1F0", at + 70, 50)
          .call("aten::mm", at + 71, 40)
          .annotation("PP:1B0", at + 125, 90)
          .gradient(at + 126, 89);
  return profile;
}

TEST(AccumulatedRuns, OfOneStepAreReadTogether) {
  traces::ObservedTrace trace = accumulating_rank(0).read();
  traces::append(trace, accumulating_rank(1).read());
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 1u);
  const traces::MeasuredStep& step = read.steps[0];
  EXPECT_EQ(step.schedule->shape.microbatches, 2);
  EXPECT_EQ(step.schedule->op_count(), 8);
  // From the first operator of a forward to the end of the last backward: 720 - 11 us.
  EXPECT_EQ(*std::max_element(step.timeline.end.begin(), step.timeline.end.end()), 709'000);
  EXPECT_TRUE(read.remarks.faults.empty());
}

/// One op of rank 0 for each name, 10 ns each.
std::map<traces::StepKey, traces::StepOps> step_of(const std::vector<Op>& ops) {
  traces::StepOps step;
  for (const Op& op : ops) {
    traces::ObservedOp observed;
    observed.op = op;
    observed.start = 10 * std::ssize(step.computes);
    observed.end = observed.start + 10;
    step.computes.push_back(observed);
  }
  return {{{0, 0}, step}};
}

std::vector<std::int32_t> numbers_of(const std::vector<Op>& ops) {
  auto steps = step_of(ops);
  traces::number_accumulated_runs(steps);
  std::vector<std::int32_t> numbers;
  for (const traces::ObservedOp& observed : steps.begin()->second.computes)
    numbers.push_back(observed.op.microbatch);
  return numbers;
}

Op make_op(OpKind kind, std::int32_t microbatch) {
  Op op;
  op.kind = kind;
  op.microbatch = microbatch;
  return op;
}

TEST(AccumulatedRuns, AreNumberedOnlyIfTheyFollowEachOther) {
  const Op f0 = make_op(OpKind::kForward, 0);
  const Op f1 = make_op(OpKind::kForward, 1);
  const Op b0 = make_op(OpKind::kBackward, 0);
  const Op b1 = make_op(OpKind::kBackward, 1);
  using Numbers = std::vector<std::int32_t>;
  EXPECT_EQ(numbers_of({f0, f1, b0, b1, f0, f1, b0, b1}), (Numbers{0, 1, 0, 1, 2, 3, 2, 3}));
  EXPECT_EQ(numbers_of({f0, b0, f0, b0, f0, b0}), (Numbers{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(numbers_of({f0, f0, b0, b0}), (Numbers{0, 0, 0, 0}));  // slices of two layers
  EXPECT_EQ(numbers_of({f0, f0, b0}), (Numbers{0, 0, 0}));         // recomputed
  EXPECT_EQ(numbers_of({f0, f1, f0, f1}), (Numbers{0, 1, 0, 1}));  // an evaluation
}

// The receive for the second run's forward ends before it; the send of the first run's follows it.
TEST(AccumulatedRuns, TakeTheirMessagesAlong) {
  const Op f0 = make_op(OpKind::kForward, 0);
  const Op b0 = make_op(OpKind::kBackward, 0);
  auto steps = step_of({f0, b0, f0, b0});  // at 0, 10, 20 and 30
  for (const auto& [kind, start, end] :
       {std::tuple{OpKind::kRecvForward, 15, 20}, std::tuple{OpKind::kSendForward, 10, 12},
        std::tuple{OpKind::kSendBackward, 40, 45}}) {
    traces::ObservedOp message;
    message.op = make_op(kind, 0);
    message.start = start;
    message.end = end;
    steps.begin()->second.messages.push_back(message);
  }
  traces::number_accumulated_runs(steps);
  const std::vector<traces::ObservedOp>& messages = steps.begin()->second.messages;
  EXPECT_EQ(messages[0].op.microbatch, 1);
  EXPECT_EQ(messages[1].op.microbatch, 0);
  EXPECT_EQ(messages[2].op.microbatch, 1);
}

}  // namespace
}  // namespace bubblescope::tests
