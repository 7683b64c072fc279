// Tests quantiles of the shifts between two steps.
#include "sim/analysis/timeline_difference.h"

#include <gtest/gtest.h>

namespace bubblescope::tests {
namespace {

// The median of four is the lower of the middle two, as in all reports.
TEST(TimelineDifference, HasQuantilesOfShiftsEitherWay) {
  TimelineDifference difference;
  EXPECT_EQ(compute_start_shift_quantile(difference, 50), 0);
  for (const Nanos shift : {40, -20, 10, 30}) difference.shifts.push_back({0, {}, shift});
  EXPECT_EQ(compute_start_shift_quantile(difference, 50), 20);
  EXPECT_EQ(compute_start_shift_quantile(difference, 95), 40);
  EXPECT_EQ(compute_start_shift_quantile(difference, 100), 40);
}

}  // namespace
}  // namespace bubblescope::tests
