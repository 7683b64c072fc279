#include "traces/json/scan_json.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "sim/ir/error.h"

namespace bubblescope::tests {
namespace {

/// Writes down what it is given; wants everything but what is under "skip".
class Recorder : public traces::JsonVisitor {
 public:
  bool visit_key(std::string_view key) override {
    text += "k:" + std::string(key) + " ";
    return key != "skip";
  }
  void visit_string(std::string_view value) override { text += "s:" + std::string(value) + " "; }
  void visit_number(std::string_view value) override { text += "n:" + std::string(value) + " "; }
  void visit_word(std::string_view value) override { text += "w:" + std::string(value) + " "; }
  void begin_object() override { text += "{ "; }
  void end_object() override { text += "} "; }
  void begin_array() override { text += "[ "; }
  void end_array() override { text += "] "; }

  std::string text;
};

/// The result of a full parser, which skips nothing.
class Everything : public Recorder {
 public:
  bool visit_key(std::string_view key) override {
    Recorder::visit_key(key);
    return true;
  }
};

std::string scan(const std::string& text, bool& valid) {
  Everything visitor;
  valid = traces::scan_json(text, visitor);
  return visitor.text;
}

std::string parse(const std::string& text, bool& valid) {
  Everything visitor;
  valid = true;
  try {
    traces::parse_json_into(text, "f", visitor, [] { return false; });
  } catch (const Error&) {
    valid = false;
  }
  return visitor.text;
}

const std::string kSample =
    R"({"schemaVersion": 1, "traceEvents": [)"
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 12.345, "dur": -0.5e-3, "args": {}},)"
    R"({"ph": "X", "name": "quote \" and \\ and \u00e9 é", "args": {"a": [1, 2, [true, false]]}},)"
    R"({"name": "a name that is longer than eight bytes", "pid": "0", "x": null}], "n": [[], {}]})";

TEST(ScanJson, PassesOnWhatAFullParserFinds) {
  bool scanned = false;
  bool parsed = false;
  const std::string found = scan(kSample, scanned);
  EXPECT_TRUE(scanned);
  EXPECT_EQ(found, parse(kSample, parsed));
}

TEST(ScanJson, SkipsTheValuesOfKeysThatAreNotWanted) {
  Recorder visitor;
  EXPECT_TRUE(
      traces::scan_json(R"({"skip": {"a": ["}", 1e5, {"b": "\u0041"}]}, "b": 2})", visitor));
  EXPECT_EQ(visitor.text, "{ k:skip k:b n:2 } ");
}

TEST(ScanJson, NeverAcceptsWhatAFullParserRefuses) {
  // Every byte of the sample is removed, doubled or replaced.
  std::mt19937 random(7);
  const std::string letters = "{}[]\",:\\ 0-.eE+tfnu\n\x01\xc3\xff\x7f";
  for (std::size_t at = 0; at < kSample.size(); ++at)
    for (int change = 0; change < 8; ++change) {
      std::string mutant = kSample;
      if (change == 0)
        mutant.erase(at, 1);
      else if (change == 1)
        mutant.insert(at, 1, mutant[at]);
      else
        mutant[at] = letters[random() % letters.size()];
      bool scanned = false;
      bool parsed = false;
      const std::string found = scan(mutant, scanned);
      const std::string expected = parse(mutant, parsed);
      if (!scanned) continue;
      ASSERT_TRUE(parsed) << mutant;
      ASSERT_EQ(found, expected) << mutant;
    }
}

TEST(ScanJson, AlsoChecksWhatItSkips) {
  for (const char* bad :
       {R"({"skip": tru})", R"({"skip": 01})", R"({"skip": "\x"})", R"({"skip": [1,]})",
        "{\"skip\": \"\xff\"}", R"({"skip": {"a" 1}})", R"({"skip": 1.})", R"({"skip": "a)"}) {
    Recorder visitor;
    EXPECT_FALSE(traces::scan_json(bad, visitor)) << bad;
  }
}

TEST(ScanJson, LeavesDeepNestingToTheFullParser) {
  Recorder visitor;
  EXPECT_FALSE(traces::scan_json(std::string(100'000, '['), visitor));
  EXPECT_FALSE(traces::scan_json("{\"skip\":" + std::string(100'000, '['), visitor));
}

}  // namespace
}  // namespace bubblescope::tests
