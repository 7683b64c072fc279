// Tests PyTorch profiles that name no op, as of Schedule1F1B: the computation between messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/error_text.h"
#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// One step of 1F1B without annotations: two ranks, one micro-batch.
RankProfile first_rank() {
  return RankProfile(0)
      .annotation("ProfilerStep#3", 0, 1000)
      .call("aten::tensor_split", 1, 1)
      .call("c10d::barrier", 3, 1)
      .forward_call(10, 100)
      .call("c10d::send", 111, 1)
      .call("c10d::recv_", 113, 1)
      .annotation("gloo:recv", 114, 386)
      .gradient(501, 199)
      .call("aten::div_", 720, 1);
}
RankProfile last_rank() {
  return RankProfile(1)
      .annotation("ProfilerStep#3", 0, 1000)
      .call("c10d::recv_", 5, 1)
      .annotation("gloo:recv", 6, 106)
      .forward_call(113, 100)
      .call("aten::ones_like", 214, 1)
      .gradient(216, 200)
      .call("c10d::send", 417, 2);
}

TEST(UnannotatedProfile, OpsWithoutAnnotationsLieBetweenMessages) {
  traces::ObservedTrace trace = first_rank().read();
  traces::append(trace, last_rank().read());
  EXPECT_EQ(op_of(trace, "0F0").start, 10'000);
  EXPECT_EQ(op_of(trace, "0F0").end, 110'000);
  EXPECT_EQ(op_of(trace, "0B0").start, 500'000);  // when the gradient had arrived
  EXPECT_EQ(op_of(trace, "1F0").start, 112'000);
  EXPECT_EQ(op_of(trace, "1B0").end, 416'000);
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].schedule->op_count(), 4);
  ASSERT_EQ(read.whole_steps.size(), 1u);
  EXPECT_EQ(read.whole_steps[0].whole, 1'000'000);
  EXPECT_TRUE(read.remarks.faults.empty());
}

/// The same twice, by a profiler without a schedule, which marks no step.
RankProfile unmarked_rank(int rank) {
  RankProfile profile(rank);
  for (const int at : {0, 1000})
    if (rank == 0)
      profile.forward_call(at + 10, 100)
          .call("c10d::send", at + 111, 1)
          .call("c10d::recv_", at + 113, 1)
          .annotation("gloo:recv", at + 114, 386)
          .gradient(at + 501, 199)
          .annotation("Optimizer.step#SGD.step", at + 710, 20);
    else
      profile.call("c10d::recv_", at + 5, 1)
          .annotation("gloo:recv", at + 6, 106)
          .forward_call(at + 113, 100)
          .gradient(at + 216, 200)
          .call("c10d::send", at + 417, 2)
          .annotation("Optimizer.step#SGD.step", at + 430, 20);
  return profile;
}

TEST(UnannotatedProfile, StepsThatNothingMarksEndWhereNoMicrobatchIsInFlight) {
  traces::ObservedTrace trace = unmarked_rank(0).read();
  traces::append(trace, unmarked_rank(1).read());
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 2u);
  for (const traces::MeasuredStep& step : read.steps) {
    EXPECT_EQ(step.schedule->op_count(), 4);
    Nanos travelling = 0;
    for (InstructionId id = 0; id < step.program.size(); ++id)
      if (is_message(step.program.instructions[id]))
        travelling += step.timeline.end[id] - step.timeline.start[id];
    EXPECT_GT(travelling, 0) << "in each step its messages are known";
  }
  ASSERT_EQ(read.whole_steps.size(), 2u);
  EXPECT_EQ(read.whole_steps[0].whole, 720'000);  // from the first forward to the optimizer's end
  EXPECT_TRUE(read.remarks.faults.empty());
  const std::vector<std::string>& notes = read.remarks.notes;
  EXPECT_TRUE(std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
    return note.find("no step is marked (ProfilerStep#N)") != note.npos;
  }));
  EXPECT_NE(error_of([] {
              traces::assemble_steps(unmarked_rank(1).read());
            }).find("where a step ends shows only if all ranks are given"),
            std::string::npos);
}

// The backward's last function seems to end at 716, but its thread posts a message at 705.
// A barrier reduces a tensor of its own, long before the first forward.
TEST(UnannotatedProfile, CallsWithinABarrierAreOfNoOp) {
  const traces::ObservedTrace trace = RankProfile(0)
                                          .annotation("ProfilerStep#3", 0, 1000)
                                          .call("c10d::barrier", 3, 400)
                                          .call("aten::fill_", 4, 10)
                                          .forward_call(410, 100)
                                          .call("c10d::send", 511, 1)
                                          .call("c10d::recv_", 513, 1)
                                          .gradient(601, 199)
                                          .read();
  EXPECT_EQ(op_of(trace, "0F0").start, 410'000);
}

TEST(UnannotatedProfile, MessagesWithinAnOpAreDoubted) {
  traces::ObservedTrace trace = first_rank().gradient(701, 15).call("c10d::send", 705, 1).read();
  ASSERT_EQ(trace.remarks.doubts.size(), 1u);
  EXPECT_NE(trace.remarks.doubts[0].find("the thread posted 1 message while"), std::string::npos)
      << trace.remarks.doubts[0];
  EXPECT_TRUE(first_rank().read().remarks.doubts.empty());
}

TEST(UnannotatedProfile, SeveralStagesWithoutAnnotationsAreRefused) {
  RankProfile rank = first_rank();
  rank.call("c10d::recv_", 600, 1);  // from a second stage: the first rank receives no activations
  EXPECT_EQ(error_of([&] { rank.read(); }),
            "rank0.json: no op is annotated, and step 3 receives 2 messages for 1 forwards: the "
            "rank has several stages, or the step has another run of the pipeline without "
            "backwards, or ranks exchanged shapes, as before a first step; record a later step, "
            "and call profiler.step() after each run; annotate the ops: for "
            "torch.distributed.pipelining call annotate_pytorch() of "
            "tools/hooks/bubblescope_hooks.py; elsewhere put each op into its op(), or into "
            "record_function('PP:0F3')");
}

// A module of the stage has a range of its own, within the op.
TEST(UnannotatedProfile, AnnotationsOfForwardsAloneAreNoOps) {
  const traces::ObservedTrace trace = first_rank().annotation("forward_step", 20, 50).read();
  EXPECT_EQ(op_of(trace, "0F0").start, 10'000);
  EXPECT_EQ(op_of(trace, "0B0").start, 500'000);
  EXPECT_TRUE(std::any_of(
      trace.remarks.notes.begin(), trace.remarks.notes.end(), [](const std::string& note) {
        return note.find("name forwards alone, such as 'forward_step'") != note.npos;
      }));
}

// With and without marks, what a model calls its parts says nothing of the pipeline's ops.
TEST(UnannotatedProfile, OwnNamesNeitherMarkStepsNorHideOps) {
  for (const char* name : {"forward", "stage_forward", "compute_loss"}) {
    traces::ObservedTrace trace = unmarked_rank(0).annotation(name, 20, 50).read();
    traces::append(trace, unmarked_rank(1).annotation(name, 120, 50).read());
    const traces::AssembledSteps read = traces::assemble_steps(trace);
    ASSERT_EQ(read.steps.size(), 2u) << name;
    for (const traces::MeasuredStep& step : read.steps) EXPECT_EQ(step.schedule->op_count(), 4);
  }
}

// Before its first step PyTorch's runtime sends the shapes of activations, once.
TEST(UnannotatedProfile, AFirstStepWithOtherMessagesIsLeftOut) {
  RankProfile rank = first_rank();
  rank.call("c10d::recv_", 600, 1);
  for (const int start : {1000, 2000})
    rank.annotation("ProfilerStep#" + std::to_string(3 + start / 1000), start, 1000)
        .forward_call(start + 10, 100)
        .call("c10d::send", start + 111, 1)
        .call("c10d::recv_", start + 113, 1)
        .gradient(start + 501, 199);
  const traces::ObservedTrace trace = rank.read();
  ASSERT_EQ(trace.remarks.left_out.size(), 1u);
  EXPECT_EQ(trace.remarks.left_out[0],
            "rank0.json: a step is left out: step 3 receives 2 messages for 1 forwards; ranks may "
            "have exchanged shapes in it, as before a first step");
  for (const traces::ObservedOp& observed : trace.ops) EXPECT_NE(observed.step, 3);
}

}  // namespace
}  // namespace bubblescope::tests
