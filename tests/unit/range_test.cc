// Every computed value stays in the range in which it can be summed.
#include "sim/ir/range.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "sim/model/injection.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMax64 = std::numeric_limits<Nanos>::max();

TEST(Range, RoundsToTheNearest) {
  EXPECT_EQ(round_nanos(1.5, "x"), 2);
  EXPECT_EQ(round_bytes(0.4, "x"), 0);
  EXPECT_EQ(round_nanos(static_cast<double>(kMaxNanos), "x"), kMaxNanos);
}

TEST(Range, RefusesTooMuch) {
  for (const double wrong : {1.2e18, 1e300, HUGE_VAL}) {
    EXPECT_EQ(error_of([&] { round_nanos(wrong, "x"); }),
              "x takes longer than 36 years; use shorter times, or fewer or smaller ops")
        << wrong;
    EXPECT_EQ(error_of([&] { round_bytes(wrong, "x"); }),
              "x takes more than 2^60 bytes; use a smaller model or smaller micro-batches")
        << wrong;
  }
}

// Such a number is a contradiction in what it was computed from, not a step that is too long.
TEST(Range, RefusesLessThanNothing) {
  EXPECT_EQ(error_of([] { round_nanos(-1, "x"); }),
            "x takes -1.000000 ns; correct the model, the device or the assumption that it follows "
            "from");
  EXPECT_EQ(error_of([] { round_bytes(-2.5, "x"); }),
            "x takes -2.500000 bytes; correct the model, the device or the assumption that it "
            "follows from");
  EXPECT_EQ(error_of([] { round_nanos(std::nan(""), "x"); }),
            "x takes nan ns; correct the model, the device or the assumption that it follows from");
}

TEST(Range, MultipliesWithinIt) {
  EXPECT_EQ(multiply(3, 4, "x"), 12);
  EXPECT_EQ(error_of([&] { multiply(kMaxNanos, 2, "x"); }),
            "x takes longer than 36 years; use shorter times, or fewer or smaller ops");
  EXPECT_EQ(error_of([&] { multiply(kMax64, 65'536, "x"); }),
            "x takes longer than 36 years; use shorter times, or fewer or smaller ops");
}

TEST(Range, AddsWithinIt) {
  EXPECT_EQ(add_in_range(3, 4, "x"), 7);
  EXPECT_EQ(add_in_range(kMaxBytes, 0, "x"), kMaxBytes);
  EXPECT_EQ(error_of([&] { add_in_range(kMaxBytes, 1, "x"); }),
            "x together have more than 2^60 bytes or 36 years; use smaller values, or fewer");
  EXPECT_EQ(error_of([&] { add_in_range(kMax64, kMax64, "x"); }),
            "x together have more than 2^60 bytes or 36 years; use smaller values, or fewer");
  EXPECT_EQ(error_of([&] { add_in_range(-kMaxBytes, -1, "x"); }),
            "x together have more than 2^60 bytes or 36 years; use smaller values, or fewer");
}

// Each is a valid time; the sum of four overflows 64 bits to a small number.
TEST(Range, SumsWithoutOverflow) {
  EXPECT_EQ(error_of([&] { expect_in_range(std::vector<Nanos>(16, kMaxNanos)); }),
            "the sum of all ops is longer than 36 years; use shorter times, or fewer or smaller "
            "ops");
  EXPECT_NO_THROW(expect_in_range(std::vector<Nanos>(4, kMaxNanos / 4)));
  EXPECT_NO_THROW(expect_in_range(kMaxNanos / 8, 8));
  EXPECT_EQ(error_of([&] { expect_in_range(kMaxNanos / 8 + 1, 8); }),
            "the step's times on 8 ranks together are longer than 36 years; use shorter times, "
            "or fewer or smaller ops");
}

TEST(Range, ASlowedOpStaysInIt) {
  const Injection slow = parse_injection("rank=0,slow=1000000");
  EXPECT_EQ(slow.extra(1'000'000), 999'999'000'000);
  EXPECT_EQ(slow.extra(kMaxNanos), kMaxNanos);
}

}  // namespace
}  // namespace bubblescope::tests
