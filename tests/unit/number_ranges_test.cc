// Numbers in the words of a report.
#include "traces/measured/number_ranges.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace bubblescope::tests {
namespace {

TEST(NumberRanges, OfStepsAreJoined) {
  EXPECT_EQ(traces::list_steps({2}), "step 2");
  EXPECT_EQ(traces::list_steps({3, 6}), "steps 3, 6");
  EXPECT_EQ(traces::list_steps({0, 1, 2, 5, 7, 8}), "steps 0 to 2, 5, 7, 8");
}

// Every other one of many steps has no neighbour to be joined with.
TEST(NumberRanges, AreCutWhereTheyAreMany) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t number = 0; number < 1000; number += 2) numbers.push_back(number);
  EXPECT_EQ(traces::list_steps(numbers), "steps 0, 2, 4, 6, 8, 10, 12, 14, ...");
}

TEST(NumberRanges, ReachToTheLastNumber) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(traces::list_steps({kMax - 1, kMax}), "steps 9223372036854775806, 9223372036854775807");
  EXPECT_EQ(traces::list_steps({-3, kMax}), "steps -3, 9223372036854775807");
}

}  // namespace
}  // namespace bubblescope::tests
