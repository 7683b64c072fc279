// Values of whole files: those that nlohmann's parser gives, and times in exact nanoseconds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/error_text.h"
#include "traces/json/json_node.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

TEST(ParseJson, GivesTheValuesOfTheFullParser) {
  for (const char* number : {"0",
                             "-0",
                             "7",
                             "-7",
                             "0.0",
                             "-0.0",
                             "1e3",
                             "1E-3",
                             "0.1",
                             "123.456",
                             "2.5e-7",
                             "1e99",
                             "18446744073709551615",
                             "18446744073709551616",
                             "-9223372036854775808",
                             "-9223372036854775809",
                             "123456789012345678901234567890.5",
                             "4.9e-324",
                             "1e-400",
                             "0.1000000000000000055511151231257827021181583404541015625"}) {
    const std::string text =
        fmt::format(R"({{"a": [{}, true, null], "b": {{"c": "\u00e9"}}}})", number);
    const Json parsed = traces::parse_json(text, "f");
    const Json expected = Json::parse(text);
    EXPECT_EQ(parsed, expected) << number;
    EXPECT_EQ(parsed["a"][0].type(), expected["a"][0].type()) << number;
    EXPECT_EQ(parsed.dump(), expected.dump()) << number;
  }
}

TEST(ParseJson, RefusesWhatTheFullParserRefuses) {
  for (const char* text : {"[1,]", "{\"a\":1,\"a\":2}", "[1e400]", "[01]", "nul", "[1] 2"})
    EXPECT_TRUE(fails_with([&] { traces::parse_json(text, "f"); }, "f:")) << text;
  for (const char* text : {"", " \n"})
    EXPECT_TRUE(fails_with([&] { traces::parse_json(text, "f"); }, "f is empty")) << text;
}

// A duration is exact in decimal: numbers with up to 8 digits after the point, of which the last
// two decide how nanoseconds are rounded.
TEST(ParseJson, RoundsNumbersToNanosecondsAsTextIs) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20'000; ++round) {
    const auto digits = static_cast<int>(random() % 9);
    std::uint64_t power = 1;
    for (int digit = 0; digit < digits; ++digit) power *= 10;
    const std::uint64_t whole = random() % (std::uint64_t{1} << (random() % 33));
    std::string text = fmt::format("{}", whole);
    if (digits > 0) text += fmt::format(".{:0{}}", random() % power, digits);
    const traces::JsonFile file("[" + text + ", \"" + text + "\"]", "f");
    const traces::JsonNode root = file.root();
    std::string as_double = fmt::format("{}", root[0].number().value());
    if (as_double.find('e') != std::string::npos) continue;
    EXPECT_EQ(root[0].duration(), parse_duration(as_double)) << text;
  }
}

}  // namespace
}  // namespace bubblescope::tests
