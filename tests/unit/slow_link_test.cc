// Tests which link is slow, and which only by chance.
#include "sim/analysis/slow_link.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/engine/simulate.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// The slow link of a step of 1F1B with p = 4 and m = 8, whose messages take 0.5 ms; from rank 1 to
/// rank 2 the first `quick` of 8 take 0.4 ms and the others 1.5 ms.
std::optional<SlowLink> find_with(std::int32_t quick) {
  const RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 8});
  std::vector<Nanos> durations;
  for (const Instruction& one : step.program.instructions) {
    const bool is_of_link = is_message(one) && one.rank == 1 && one.peer == 2;
    durations.push_back(!is_message(one)            ? 10'000'003 + 1'000'003 * one.op.stage
                        : !is_of_link               ? 500'000
                        : one.op.microbatch < quick ? 400'000
                                                    : 1'500'000);
  }
  const Timeline timeline = simulate(step.program, durations);
  const std::vector<ReplicatedStep> steps{{{step.program, timeline}}};
  return find_slow_link(steps);
}

// The median of the link is three times the usual time in all cases. If three of eight messages are
// as quick as elsewhere, it is no property of the link.
TEST(SlowLink, ThreeQuartersOfItsMessagesAreSlow) {
  for (const std::int32_t quick : {0, 1}) {
    const std::optional<SlowLink> link = find_with(quick);
    ASSERT_TRUE(link) << quick;
    EXPECT_EQ(link->from, 1);
    EXPECT_EQ(link->to, 2);
    EXPECT_EQ(link->time, 1'500'000);
    EXPECT_EQ(link->usual, 500'000);
  }
  EXPECT_FALSE(find_with(3));
}

}  // namespace
}  // namespace bubblescope::tests
