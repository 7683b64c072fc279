// Tests spans of time.
#include "traces/measured/time_span.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace bubblescope::tests {
namespace {

constexpr Nanos kDay = Nanos{24} * 3600 * 1'000'000'000;

TEST(SortByStart, KeepsTheOrderOfEqualStarts) {
  std::vector<traces::TimeSpan> spans{{5, 6}, {1, 9}, {5, 5}, {1, 2}};
  traces::sort_by_start(spans);
  std::vector<Nanos> ends;
  for (const traces::TimeSpan& span : spans) ends.push_back(span.end);
  EXPECT_EQ(ends, (std::vector<Nanos>{9, 2, 6, 5}));
}

// From 1 to 9, of which the second span covers a part again, and from 20 to 25.
TEST(Cover, CountsEveryTimeOnce) {
  EXPECT_EQ(traces::cover({{20, 25}, {1, 5}, {2, 4}, {4, 9}}), 13);
  EXPECT_EQ(traces::cover({}), 0);
}

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
