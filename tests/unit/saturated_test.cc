// Caps that would overflow 64 bits become the largest value instead.
#include "sim/ir/saturated.h"

#include <gtest/gtest.h>

#include <limits>

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

TEST(Saturated, MultipliesUpToTheEnds) {
  EXPECT_EQ(saturated_product(3, -4), -12);
  EXPECT_EQ(saturated_product(std::int64_t{1} << 52, 1 << 12), kMax);
  EXPECT_EQ(saturated_product(-(std::int64_t{1} << 52), 1 << 12), kMin);
}

}  // namespace
}  // namespace bubblescope::tests
