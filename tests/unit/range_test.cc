// Every computed value stays in the range in which it can be summed.
#include "sim/ir/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sim/ir/error.h"
#include "sim/model/injection.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMax64 = std::numeric_limits<Nanos>::max();

TEST(Range, RoundsToTheNearest) {
  EXPECT_EQ(round_nanos(1.5, "x"), 2);
  EXPECT_EQ(round_bytes(0.4, "x"), 0);
  EXPECT_EQ(round_nanos(static_cast<double>(kMaxNanos), "x"), kMaxNanos);
}

TEST(Range, RefusesInvalidTimesAndSizes) {
  for (const double wrong : {-1.0, 1.2e18, 1e300, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(round_nanos(wrong, "x"), Error) << wrong;
    EXPECT_THROW(round_bytes(wrong, "x"), Error) << wrong;
  }
}

TEST(Range, MultipliesWithinIt) {
  EXPECT_EQ(multiply(3, 4, "x"), 12);
  EXPECT_THROW(multiply(kMaxNanos, 2, "x"), Error);
  EXPECT_THROW(multiply(kMax64, 65'536, "x"), Error);
}

TEST(Range, AddsWithinIt) {
  EXPECT_EQ(add_in_range(3, 4, "x"), 7);
  EXPECT_EQ(add_in_range(kMaxBytes, 0, "x"), kMaxBytes);
  EXPECT_THROW(add_in_range(kMaxBytes, 1, "x"), Error);
  EXPECT_THROW(add_in_range(kMax64, kMax64, "x"), Error);
  EXPECT_THROW(add_in_range(-kMaxBytes, -1, "x"), Error);
}

// Each is a valid time; the sum of four overflows 64 bits to a small number.
TEST(Range, SumsWithoutOverflow) {
  EXPECT_THROW(expect_in_range(std::vector<Nanos>(16, kMaxNanos)), Error);
  EXPECT_NO_THROW(expect_in_range(std::vector<Nanos>(4, kMaxNanos / 4)));
  EXPECT_NO_THROW(expect_in_range(kMaxNanos / 8, 8));
  EXPECT_THROW(expect_in_range(kMaxNanos / 8 + 1, 8), Error);
}

TEST(Range, ASlowedOpStaysInIt) {
  const Injection slow = parse_injection("rank=0,slow=1000000");
  EXPECT_EQ(slow.extra(1'000'000), 999'999'000'000);
  EXPECT_EQ(slow.extra(kMaxNanos), kMaxNanos);
}

}  // namespace
}  // namespace bubblescope::tests
