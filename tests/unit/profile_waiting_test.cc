// Tests when ranks of PyTorch profiles come to wait for a message, and when their ops then begin.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "sim/ir/error.h"
#include "tests/support/rank_profile.h"

namespace bubblescope::tests {
namespace {

const traces::ObservedOp& op_of(const traces::ObservedTrace& trace, const std::string& text) {
  for (const traces::ObservedOp& observed : trace.ops)
    if (to_string(observed.op) == text) return observed;
  throw Error("no op " + text);
}

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

}  // namespace
}  // namespace bubblescope::tests
