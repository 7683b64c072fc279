// Durations and amounts: parsed and printed exactly, everything else refused.
#include "sim/ir/units.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

TEST(ParseDuration, IsExactInDecimal) {
  EXPECT_EQ(parse_duration("0.1"), 100'000);  // a bare number is in milliseconds
  EXPECT_EQ(parse_duration("18.522us"), 18'522);
  EXPECT_EQ(parse_duration("3ns"), 3);
  EXPECT_EQ(parse_duration("2s"), 2'000'000'000);
  EXPECT_EQ(parse_duration("0"), 0);
  EXPECT_EQ(parse_duration("1e-05"), 10);  // how some languages print 0.00001
  EXPECT_EQ(parse_duration("2.5E+1us"), 25'000);
  EXPECT_EQ(parse_duration(".5ms"), 500'000);
}

TEST(ParseDuration, RoundsToTheNearestNanosecond) {
  EXPECT_EQ(parse_duration("0.4ns"), 0);
  EXPECT_EQ(parse_duration("0.5ns"), 1);
  EXPECT_EQ(parse_duration("1.4999us"), 1'500);
  EXPECT_EQ(parse_duration("0.0000001"), 0);
}

TEST(ParseDuration, RefusesInvalidDurations) {
  for (const char* text :
       {"",       " ",   "ms",   "-1",  "+1", "1 ms", "1m",    "1h",
        "1.2.3",  "nan", "inf",  "0x1", "1e", "1e+",  "1e999", "99999999999999999999",
        "101e5s", ".",   "1ms ", "1,5"})
    EXPECT_TRUE(fails_with([&] { parse_duration(text); }, "'" + std::string(text) + "' is "))
        << "'" << text << "'";
}

TEST(MillionthsText, IsTheShortestThatReadsBack) {
  for (const char* text : {"0", "2", "1.5", "-0.25", "-3", "0.000001", "1000000"})
    EXPECT_EQ(format_millionths(parse_millionths(text)), text);
}

TEST(ParseMillionths, KeepsSignAndFraction) {
  EXPECT_EQ(parse_millionths("1"), 1'000'000);
  EXPECT_EQ(parse_millionths("-0.5"), -500'000);
  EXPECT_EQ(parse_millionths("201216"), 201'216'000'000);
  for (const char* text : {"", "-", "--1", "1x", "1e99", "- 1"})
    EXPECT_TRUE(fails_with([&] { parse_millionths(text); }, "'" + std::string(text) + "' is "))
        << "'" << text << "'";
}

TEST(DurationText, IsTheShortestExactForm) {
  EXPECT_EQ(to_text(27'000'000), "27 ms");
  EXPECT_EQ(to_text(1'234'567), "1.234567 ms");
  EXPECT_EQ(to_text(1'500), "1.5 us");
  EXPECT_EQ(to_text(999), "999 ns");
  EXPECT_EQ(to_text(2'000'000'000), "2 s");
  EXPECT_EQ(to_text(-1'500'000), "-1.5 ms");
  EXPECT_EQ(to_text(0), "0 ms");
}

}  // namespace
}  // namespace bubblescope::tests
