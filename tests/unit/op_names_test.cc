// Names of ops in traces of other programs.
#include "traces/measured/op_names.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

TEST(OpNames, AreThoseOfTheFrameworks) {
  EXPECT_EQ(traces::parse_op_name("PP:2F3")->op, forward(2, 3));
  EXPECT_EQ(traces::parse_op_name("1I0")->op, input_grad(1, 0));
  EXPECT_EQ(traces::parse_op_name("0SEND_F1")->op.kind, OpKind::kSendForward);
  EXPECT_EQ(traces::parse_op_name("Backward 5")->op.microbatch, 5);
  EXPECT_FALSE(traces::parse_op_name("Backward 5")->has_stage);
  EXPECT_FALSE(traces::parse_op_name("forward-compute")->has_microbatch);
  for (const char* other : {"", "PP:", "sgemm", "## forward ##", "0F", "3UNSHARD", "Forward x",
                            "Forward 99999999999", "0F0 and more"})
    EXPECT_FALSE(traces::parse_op_name(other) || traces::parse_pair_name(other)) << other;
}

}  // namespace
}  // namespace bubblescope::tests
