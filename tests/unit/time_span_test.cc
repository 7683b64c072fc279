// Tests spans of time.
#include "traces/measured/time_span.h"

#include <gtest/gtest.h>

#include <limits>

namespace bubblescope::tests {
namespace {

constexpr Nanos kDay = Nanos{24} * 3600 * 1'000'000'000;

TEST(LieWithinDays, HoldsForTimesOfOneTraceAlone) {
  for (const Nanos origin : {Nanos{0}, Nanos{1'700'000'000'000'000'000}}) {
    EXPECT_TRUE(traces::lie_within_days(origin, origin + 100 * kDay));
    EXPECT_TRUE(traces::lie_within_days(origin + 100 * kDay, origin));
    EXPECT_FALSE(traces::lie_within_days(origin, origin + 100 * kDay + 1));
  }
}

// The difference of these does not fit into 64 bits.
TEST(LieWithinDays, HoldsForNoTimesTooFarToSubtract) {
  const Nanos first = std::numeric_limits<Nanos>::min();
  const Nanos last = std::numeric_limits<Nanos>::max();
  EXPECT_FALSE(traces::lie_within_days(first, last));
  EXPECT_FALSE(traces::lie_within_days(last, first));
}

}  // namespace
}  // namespace bubblescope::tests
