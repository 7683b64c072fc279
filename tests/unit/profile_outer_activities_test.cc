// Tests which of a device's activities belong to an op, and which are the step's.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/device_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr int kComputing = 70;  ///< streams of the device
constexpr int kReducing = 71;
constexpr const char* kAllReduce = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)";

traces::ObservedOp only_op(const traces::ObservedTrace& trace) {
  EXPECT_EQ(trace.ops.size(), 1u);
  return trace.ops.at(0);
}

/// A backward that computes from 100 to 300 µs, with one more kernel of another stream.
traces::ObservedOp backward_with(const std::string& name, int start, int duration,
                                 const std::string& group = "") {
  DeviceProfile profile(0, 1);
  profile.annotation("PP:0B0", 0, 50);
  profile.kernel("gemm", 10, kComputing, 100, 100).kernel("gemm", 20, kComputing, 200, 100);
  profile.kernel(name, 30, kReducing, start, duration, group);
  return only_op(profile.read());
}

// DDP's hooks launch the reduction of the last gradients within the last backward.
TEST(ProfileOuterActivities, AReductionThatOutlastsItsBackwardIsNotOfIt) {
  EXPECT_EQ(backward_with(kAllReduce, 290, 400).end, 300'000);
  EXPECT_EQ(backward_with(kAllReduce, 290, 400, "mesh_dp").end, 300'000);
  EXPECT_EQ(backward_with(kAllReduce, 290, 400, "DATA_PARALLEL_GROUP").end, 300'000);
}

// FSDP gathers the parameters of later layers while earlier ones compute, and may begin before.
TEST(ProfileOuterActivities, AGatherForLaterOpsIsNotOfTheOp) {
  const char* const gather = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)";
  const traces::ObservedOp op = backward_with(gather, 110, 600, "mesh_dp");
  EXPECT_EQ(op.start, 100'000);
  EXPECT_EQ(op.end, 300'000);
}

// A profile whose steps nothing marks: what runs between the ops of two steps is the first one's.
TEST(ProfileOuterActivities, WithoutMarksBelongToTheStepBefore) {
  DeviceProfile profile(0, 1);
  for (const int begin : {0, 1000}) {
    profile.annotation("PP:0F0", begin, 50).annotation("PP:0B0", begin + 60, 50);
    profile.kernel("gemm", begin + 10, kComputing, begin + 100, 100);
    profile.kernel("gemm", begin + 70, kComputing, begin + 200, 100);
    profile.kernel(kAllReduce, begin + 120, kReducing, begin + 310, 50, "mesh_dp");
  }
  const traces::AssembledSteps read = traces::assemble_steps(profile.read());
  EXPECT_EQ(read.steps.size(), 2u);
  ASSERT_EQ(read.whole_steps.size(), 2u);
  for (const traces::WholeStep& step : read.whole_steps) {
    EXPECT_EQ(step.pipeline, 200'000);
    EXPECT_EQ(step.whole, 260'000);
    ASSERT_EQ(step.outside.size(), 1u);
    EXPECT_EQ(step.outside.front().second, 50'000);
  }
}

// Tensor-parallel ranks add up what an op has computed before it is sent.
TEST(ProfileOuterActivities, ACollectiveOfTheRanksThatShareAnOpEndsIt) {
  EXPECT_EQ(backward_with(kAllReduce, 300, 40, "mesh_tp").end, 340'000);
  EXPECT_EQ(backward_with(kAllReduce, 300, 40, "TENSOR_MODEL_PARALLEL_GROUP").end, 340'000);
}

// The op's first kernel waits for parameters that are gathered at the last moment, from 40 µs on.
TEST(ProfileOuterActivities, AGatherThatTheOpWaitsForBeginsIt) {
  EXPECT_EQ(backward_with("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgs)", 40, 60).start,
            40'000);
}

// While the gather runs, the stream still computes the op before, until 80 µs.
TEST(ProfileOuterActivities, WaitingForAGatherBeginsWhereTheOpBeforeHasEnded) {
  DeviceProfile profile(0, 1);
  profile.annotation("PP:0F0", 0, 50).annotation("PP:0F1", 60, 50);
  profile.kernel("gemm", 10, kComputing, 60, 20);
  profile.kernel("ncclDevKernel_AllGather_RING_LL()", 65, kReducing, 62, 38);
  profile.kernel("gemm", 70, kComputing, 100, 50);
  const traces::ObservedTrace trace = profile.read();
  ASSERT_EQ(trace.ops.size(), 2u);
  EXPECT_EQ(trace.ops[1].start, 80'000);
}

/// One step of a pipeline of one rank: F and B from 100 to 300 µs, an all-reduce of 50 µs, an
/// optimizer of 30 and another kernel of 10 µs.
traces::ObservedTrace step_with_update() {
  DeviceProfile profile(0, 1);
  profile.annotation("ProfilerStep#4", 0, 500);
  profile.annotation("PP:0F0", 0, 20).annotation("PP:0B0", 20, 20);
  profile.annotation("Optimizer.step#AdamW.step", 50, 10);
  profile.kernel("gemm", 10, kComputing, 100, 100).kernel("gemm", 30, kComputing, 200, 100);
  profile.kernel(kAllReduce, 45, kReducing, 300, 50);
  profile.kernel("clip_grad", 47, kComputing, 350, 10);
  profile.kernel("multi_tensor_apply_kernel", 55, kComputing, 360, 30);
  return profile.read();
}

TEST(ProfileOuterActivities, AreNamedByWhatRunsOutsideThePipeline) {
  const traces::AssembledSteps read = traces::assemble_steps(step_with_update());
  ASSERT_EQ(read.whole_steps.size(), 1u);
  using Parts = std::vector<std::pair<std::string, Nanos>>;
  EXPECT_EQ(read.whole_steps[0].outside,
            (Parts{{"all-reduce", 50'000}, {"optimizer", 30'000}, {"other kernels", 10'000}}));
}

// Gloo shows a collective from its post to its completion, in an annotation of its own.
TEST(ProfileOuterActivities, OfTheHostAreNamedAsWell) {
  RankProfile profile(0, 1);
  profile.annotation("ProfilerStep#4", 0, 500);
  profile.annotation("PP:0F0", 0, 100).call("aten::mm", 0, 100);
  profile.annotation("PP:0B0", 100, 100).gradient(100, 100);
  profile.annotation("gloo:all_reduce", 210, 50);
  profile.annotation("Optimizer.step#AdamW.step", 270, 40);
  const traces::AssembledSteps read = traces::assemble_steps(profile.read());
  ASSERT_EQ(read.whole_steps.size(), 1u);
  using Parts = std::vector<std::pair<std::string, Nanos>>;
  EXPECT_EQ(read.whole_steps[0].outside, (Parts{{"all-reduce", 50'000}, {"optimizer", 40'000}}));
}

// Names that the training script gives say as much. Ranges within each other count once, and one
// that holds ops is none of these.
TEST(ProfileOuterActivities, OfTheScriptAreNamedAsWell) {
  RankProfile profile(0, 1);
  profile.annotation("ProfilerStep#4", 0, 500).annotation("train_step_with_optimizer", 5, 490);
  profile.annotation("dataloader", 10, 60);
  profile.annotation("PP:0F0", 100, 100).call("aten::mm", 100, 100);
  profile.annotation("PP:0B0", 200, 100).gradient(200, 100);
  profile.annotation("optimizer_step", 310, 80);
  profile.annotation("Optimizer.step#AdamW.step", 320, 40);
  const traces::AssembledSteps read = traces::assemble_steps(profile.read());
  ASSERT_EQ(read.whole_steps.size(), 1u);
  using Parts = std::vector<std::pair<std::string, Nanos>>;
  EXPECT_EQ(read.whole_steps[0].outside, (Parts{{"optimizer", 80'000}, {"data loader", 60'000}}));
}

// Both replicas are in the step for 500 µs. What is outside of the pipeline is that of the replica
// that computes the longest: the other one waits for it in the all-reduce.
TEST(ProfileOuterActivities, OutsideAreThoseOfTheReplicaThatWaitsTheLeast) {
  traces::ObservedTrace trace;
  for (const int rank : {0, 1}) {
    DeviceProfile profile(rank, 2);
    profile.groups(R"({"pg_desc":"mesh_pp","ranks":[)" + std::to_string(rank) +
                   R"(]},{"pg_desc":"mesh_dp","ranks":[0,1]})");
    profile.annotation("ProfilerStep#4", 0, 500);
    profile.annotation("PP:0F0", 0, 20).annotation("PP:0B0", 20, 20);
    const int end = rank == 0 ? 300 : 400;
    profile.kernel("gemm", 10, kComputing, 100, 100).kernel("gemm", 30, kComputing, 200, end - 200);
    profile.kernel(kAllReduce, 45, kReducing, end, 450 - end);
    traces::append(trace, profile.read());
  }
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.whole_steps.size(), 1u);
  EXPECT_EQ(read.whole_steps[0].pipeline, 300'000);
  ASSERT_EQ(read.whole_steps[0].outside.size(), 1u);
  EXPECT_EQ(read.whole_steps[0].outside[0].second, 50'000);
}

}  // namespace
}  // namespace bubblescope::tests
