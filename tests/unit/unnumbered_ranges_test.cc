// Tests ranges without numbers among ranges with numbers, in profiles of PyTorch.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/rank_profile.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

// Where ops have numbers, a runtime's name around one is that op again. Elsewhere it is left out,
// and said.
TEST(UnnumberedRanges, NamesWithoutNumbersAreNoFurtherOps) {
  RankProfile profile(1);
  profile.annotation("DeepSpeedEngine.forward", 5, 100)
      .annotation("PP:1F0", 10, 90)
      .call("aten::mm", 30, 30);
  const auto count_computes = [](const traces::ObservedTrace& trace) {
    return std::count_if(trace.ops.begin(), trace.ops.end(),
                         [](const traces::ObservedOp& one) { return is_compute(one.op.kind); });
  };
  const traces::ObservedTrace within = profile.read();
  EXPECT_EQ(count_computes(within), 1);
  EXPECT_TRUE(within.remarks.doubts.empty());
  const traces::ObservedTrace outside =
      profile.annotation("DeepSpeedEngine.forward", 200, 100).call("aten::mm", 230, 30).read();
  EXPECT_EQ(count_computes(outside), 1);
  ASSERT_EQ(outside.remarks.doubts.size(), 1u);
  EXPECT_NE(outside.remarks.doubts[0].find(
                "1 range left out, which name an op without its number outside of all "
                "numbered ops, such as 'DeepSpeedEngine.forward'"),
            std::string::npos)
      << outside.remarks.doubts[0];
}

// Forwards may have numbers and backwards not: the order gives those.
TEST(UnnumberedRanges, OneKindOfOpMayHaveNumbersAlone) {
  RankProfile first(0), last(1);
  for (RankProfile* rank : {&first, &last}) rank->annotation("ProfilerStep#1", 0, 600);
  for (const int at : {0, 1}) {
    first.annotation("PP:0F" + std::to_string(at), 100 * at, 100);
    first.annotation("backward_step", 300 + 200 * at, 100);
    last.annotation("PP:1F" + std::to_string(at), 100 + 200 * at, 100);
    last.annotation("backward_step", 200 + 200 * at, 100);
  }
  traces::ObservedTrace trace = first.read();
  traces::append(trace, last.read());
  EXPECT_TRUE(trace.remarks.doubts.empty()) << trace.remarks.doubts.front();
  const std::vector<traces::MeasuredStep> steps = traces::assemble_steps(trace).steps;
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].schedule->op_count(), 8);
  EXPECT_EQ(to_string(steps[0].schedule->order[1].back()), "1B1");
  EXPECT_EQ(*std::max_element(steps[0].timeline.end.begin(), steps[0].timeline.end.end()), 600'000);
}

}  // namespace
}  // namespace bubblescope::tests
