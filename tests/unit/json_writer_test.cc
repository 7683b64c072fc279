// Writing json: commas, line breaks, numbers and escapes.
#include "traces/json/json_writer.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace bubblescope::tests {

namespace {

std::string write(const std::function<void(traces::JsonWriter&)>& members,
                  traces::JsonStyle style = {}) {
  std::string out;
  traces::JsonWriter json(out, style);
  members(json);
  return out;
}

TEST(JsonWriter, CommasStandBetweenValuesOfAListAndNowhereElse) {
  EXPECT_EQ(write([](traces::JsonWriter& json) {
              json.begin_array().value(1).begin_array().end_array().begin_object().end_object();
              json.value(2).end_array();
            }),
            "[1,[],{},2]");
  EXPECT_EQ(write([](traces::JsonWriter& json) {
              json.begin_object().member("a", 1).key("b").begin_object().member("c", true);
              json.end_object().array("d", std::vector<int>{3, -4}).end_object();
            }),
            R"({"a":1,"b":{"c":true},"d":[3,-4]})");
}

TEST(JsonWriter, ALineBreakStandsBehindTheComma) {
  EXPECT_EQ(write([](traces::JsonWriter& json) {
              json.begin_object().line(1).member("a", 1).line(1).member("b", 2).line(0);
              json.end_object();
            }),
            "{\n \"a\":1,\n \"b\":2\n}");
}

TEST(JsonWriter, ALineBetweenDoesNotStandBeforeTheFirst) {
  EXPECT_EQ(write([](traces::JsonWriter& json) {
              json.begin_array();
              for (const int each : {1, 2, 3}) json.line_between(2).value(each);
              json.end_array();
            }),
            "[1,\n  2,\n  3]");
}

TEST(JsonWriter, NumbersReadBackAsTheyWere) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  const nlohmann::json read = nlohmann::json::parse(write([&](traces::JsonWriter& json) {
    json.begin_array().value(kMin).value(kMax).value(0.1).value(3.0).value(NAN);
    json.fixed(0.5, 3).end_array();
  }));
  EXPECT_EQ(read[0].get<std::int64_t>(), kMin);
  EXPECT_EQ(read[1].get<std::uint64_t>(), kMax);
  EXPECT_EQ(read[2].get<double>(), 0.1);
  EXPECT_TRUE(read[3].is_number_float());
  EXPECT_TRUE(read[4].is_null()) << "json has no number for what is not finite";
  EXPECT_EQ(read[5].get<double>(), 0.5);
}

TEST(JsonWriter, TextIsQuotedAndWhatIsAbsentIsNull) {
  EXPECT_EQ(write([](traces::JsonWriter& json) {
              json.begin_object().member("name", "a \"b\"\n").member_or_null("x", std::optional(1));
              json.member_or_null("y", std::optional<int>()).end_object();
            }),
            R"({"name":"a \"b\"\n","x":1,"y":null})");
}

void write_nested(traces::JsonWriter& json) {
  json.begin_object().member("a", 1).key("none").begin_array().end_array();
  json.key("b").begin_array().value(2.5).begin_object().member("c", "d").end_object().end_array();
  json.key("nothing").begin_object().end_object().end_object();
}

TEST(JsonWriter, IndentsAsJsonLibrariesDo) {
  const std::string indented = write(write_nested, {.indented = true});
  EXPECT_EQ(indented, nlohmann::ordered_json::parse(write(write_nested)).dump(1));
  EXPECT_EQ(
      write([](traces::JsonWriter& json) { json.begin_array().end_array(); }, {.indented = true}),
      "[]");
}

TEST(JsonWriter, EscapesLettersBeyondAsciiWhereTheStyleSaysSo) {
  const auto letters = [](traces::JsonWriter& json) {
    json.begin_object().escaped_key("\u00e4 \"b\"").value("\u00e4\xff").end_object();
  };
  EXPECT_EQ(write(letters, {.ascii = true}), R"({"\u00e4 \"b\"":"\u00e4\ufffd"})");
  EXPECT_EQ(write(letters), "{\"\u00e4 \\\"b\\\"\":\"\u00e4\xEF\xBF\xBD\"}");
}

}  // namespace

}  // namespace bubblescope::tests
