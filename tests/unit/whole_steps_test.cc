// Tests how long steps are that several replicas mark.
#include "traces/measured/whole_steps.h"

#include <gtest/gtest.h>

#include <vector>

#include "traces/files/trace_format.h"

namespace bubblescope::tests {
namespace {

traces::ObservedActivity mark(std::int32_t replica, std::int64_t step, Nanos start, Nanos end) {
  return {"ProfilerStep", replica, replica, step, true, start, end};
}

// Replica 1 is the last in the first step and both end the second together, at 130 and 230: the
// steps take 130 and 100. The mark of replica 0 in the second holds 30 in which the first was not
// over. It makes no difference by how much the clock of replica 1 is ahead.
TEST(WholeSteps, EndWithTheLastReplicaThatMarksThem) {
  for (const Nanos ahead : {0, 1'000'000}) {
    const traces::PipelineExtents pipelines{{{0, 1}, {{10, 90}}},
                                            {{1, 1}, {{ahead + 10, ahead + 120}}},
                                            {{0, 2}, {{140, 220}}},
                                            {{1, 2}, {{ahead + 140, ahead + 220}}}};
    const std::vector<traces::WholeStep> steps =
        traces::find_whole_steps({mark(0, 1, 0, 100), mark(1, 1, ahead, ahead + 130),
                                  mark(0, 2, 100, 230), mark(1, 2, ahead + 130, ahead + 230)},
                                 pipelines);
    ASSERT_EQ(steps.size(), 2u);
    EXPECT_EQ(steps[0].whole, 130);
    EXPECT_EQ(steps[1].whole, 100);
  }
}

}  // namespace
}  // namespace bubblescope::tests
