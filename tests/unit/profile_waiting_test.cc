// Tests when ranks of PyTorch profiles come to wait for a message, and when their ops then begin.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tests/support/rank_profile.h"

namespace bubblescope::tests {
namespace {

// FSDP copies gathered parameters within the annotation before PyTorch waits for the input: that is
// no computation of the op, which came to wait when the copies had ended.
TEST(MeasuredProfile, AnOpBeginsWithItsInputAlsoIfParametersWereCopiedBefore) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("gloo:recv", 0, 60)
                                          .annotation("PP:1F0", 10, 90)
                                          .call("fsdp::split_with_sizes_copy", 12, 5)
                                          .call("aten::mm", 62, 30)
                                          .read();
  EXPECT_EQ(op_of(trace, "1F0").start, 60'000);
  EXPECT_EQ(op_of(trace, "1F0").end, 100'000);
  EXPECT_EQ(op_of(trace, "1RECV_F0").end, 60'000);
  EXPECT_EQ(op_of(trace, "1RECV_F0").waited_from, 17'000);
}

// A receive that completes while an operator runs, or after all of them, is for a later op; so is
// one that was posted within the op.
TEST(MeasuredProfile, AReceiveThatCompletesWhileAnOpComputesDoesNotBeginIt) {
  for (const auto& [start, length] : {std::pair(0, 50), {0, 97}, {20, 12}}) {
    const traces::ObservedTrace trace = RankProfile(1)
                                            .annotation("gloo:recv", start, length)
                                            .annotation("PP:1F0", 10, 90)
                                            .call("aten::mm", 12, 18)
                                            .call("aten::mm", 35, 60)
                                            .read();
    EXPECT_EQ(op_of(trace, "1F0").start, 10'000) << start;
  }
}

// Without waiting in the annotations, a rank comes to wait when it has posted its messages.
TEST(MeasuredProfile, ARankComesToWaitWhenItHasPostedItsMessages) {
  const traces::ObservedTrace trace = RankProfile(0)
                                          .annotation("ProfilerStep#1", 0, 300)
                                          .annotation("PP:0F0", 10, 40)
                                          .call("aten::mm", 12, 30)
                                          .call("c10d::send", 52, 3)
                                          .call("c10d::recv_", 56, 8)
                                          .annotation("gloo:recv", 60, 130)
                                          .annotation("PP:0B0", 192, 80)
                                          .gradient(193, 70)
                                          .read();
  EXPECT_EQ(op_of(trace, "0RECV_B0").start, 50'000);
  EXPECT_EQ(op_of(trace, "0RECV_B0").waited_from, 64'000);
}

/// The last of two ranks, whose ops follow from its messages: it receives until 112 us, and then
/// does what `loading` names until 150 us.
traces::ObservedTrace loads_after_receive(const std::string& loading) {
  return RankProfile(1)
      .annotation("ProfilerStep#3", 0, 1000)
      .call("c10d::recv_", 5, 1)
      .annotation("gloo:recv", 6, 106)
      .annotation(loading, 113, 37)
      .call("aten::stack", 120, 10)
      .forward_call(152, 60)
      .gradient(216, 200)
      .call("c10d::send", 417, 2)
      .read();
}

// DeepSpeed's last stage loads the labels of a micro-batch after it has received its activations.
TEST(MeasuredProfile, DataThatIsLoadedAfterAReceiveIsNoPartOfAnOpWithoutAnnotation) {
  for (const char* loading : {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                              "get_batch", "data loader"}) {
    const traces::ObservedTrace trace = loads_after_receive(loading);
    EXPECT_EQ(op_of(trace, "1F0").start, 150'000) << loading;
    EXPECT_EQ(op_of(trace, "1F0").end, 212'000) << loading;
    EXPECT_EQ(op_of(trace, "1RECV_F0").end, 112'000) << loading;
  }
  EXPECT_EQ(op_of(loads_after_receive("other work"), "1F0").start, 112'000);
}

// Such a name may also stand around a whole step, which then does not lose its ops.
TEST(MeasuredProfile, ARangeThatIsNamedLikeLoadingDataMayContainOps) {
  const traces::ObservedTrace trace = RankProfile(1)
                                          .annotation("ProfilerStep#3", 0, 1000)
                                          .annotation("dataload_and_train", 1, 900)
                                          .call("c10d::recv_", 5, 1)
                                          .annotation("gloo:recv", 6, 106)
                                          .forward_call(113, 100)
                                          .gradient(216, 200)
                                          .call("c10d::send", 417, 2)
                                          .read();
  EXPECT_EQ(op_of(trace, "1F0").start, 112'000);
}

// Without receives, a gap may be a wait for a message that the backend does not record, but not
// on a rank whose profile has its sends.
TEST(MeasuredProfile, ARankThatOnlySendsWaitsForNoMessage) {
  for (const bool sends : {false, true}) {
    RankProfile rank(0);
    rank.annotation("ProfilerStep#1", 0, 300).annotation("PP:0F0", 50, 40).call("aten::mm", 60, 20);
    if (sends) rank.call("c10d::send", 92, 3);
    const traces::ObservedTrace trace = rank.read();
    const bool waits =
        std::any_of(trace.ops.begin(), trace.ops.end(), [](const traces::ObservedOp& observed) {
          return observed.op.kind == OpKind::kRecvForward;
        });
    EXPECT_EQ(waits, !sends);
  }
}

// Ops from 113 to 800 us; data is loaded for 100 us between them.
TEST(MeasuredProfile, NamesDataThatIsLoadedBetweenOps) {
  RankProfile rank(1);
  rank.annotation("ProfilerStep#3", 0, 1000)
      .annotation("PP:1F0", 113, 100)
      .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 250, 100)
      .annotation("get_batch", 260, 50)
      .annotation("PP:1B0", 600, 200);
  const traces::ObservedTrace trace = rank.read();
  ASSERT_EQ(trace.remarks.lost.size(), 1u);
  EXPECT_NEAR(trace.remarks.lost[0].share, 100. / 687, 1e-9);
  EXPECT_NE(trace.remarks.lost[0].text.find("data is loaded 2 times"), std::string::npos)
      << trace.remarks.lost[0].text;
}

}  // namespace
}  // namespace bubblescope::tests
