// The figure: well-formed, complete, and small however long the step is.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/support/find_text.h"
#include "tests/support/recorded_step.h"
#include "traces/drawings/svg_canvas.h"

namespace bubblescope::tests {
namespace {

/// Every tag is closed in order, every attribute quoted, every & an entity.
void expect_well_formed(const std::string& xml) {
  static const std::regex pattern(R"re(<(/?)([a-z]+)((?: [a-zA-Z0-9:-]+="[^"<]*")*) ?(/?)>)re");
  std::vector<std::string> open;
  std::size_t at = xml.find("?>") + 2;
  for (std::sregex_iterator tag(xml.begin() + static_cast<std::ptrdiff_t>(at), xml.end(), pattern),
       end;
       tag != end; ++tag) {
    const bool closes = (*tag)[1].length() > 0;
    if (closes) {
      ASSERT_FALSE(open.empty());
      ASSERT_EQ(open.back(), (*tag)[2].str());
      open.pop_back();
    } else if ((*tag)[4].length() == 0) {
      open.push_back((*tag)[2].str());
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(count(xml, "<"), count(xml, ">"));
  EXPECT_EQ(count(xml, "&"),
            count(xml, "&amp;") + count(xml, "&lt;") + count(xml, "&gt;") + count(xml, "&quot;"));
}

TEST(Svg, IsWellFormed) {
  expect_well_formed(write_as("svg", record_step("1f1b", {.ranks = 4, .microbatches = 8})));
  expect_well_formed(write_as("svg", record_step("dualpipe", {.ranks = 8, .microbatches = 20})));
}

TEST(Svg, EscapesTheNameOfTheSchedule) {
  RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2});
  step.schedule.rename("<b> & \"c\"");
  const std::string svg = write_as("svg", step);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("&lt;b&gt; &amp; &quot;c&quot;: 2 ranks, 2 micro-batches"), std::string::npos);
}

TEST(Svg, HasACellWithItsMicrobatchForEveryOp) {
  // p = 4, m = 8: 2 p m = 64 ops, each with room for its number.
  const std::string svg = write_as("svg", record_step("1f1b", {.ranks = 4, .microbatches = 8}));
  EXPECT_EQ(count(svg, "class=\"cell "), 64u);
  EXPECT_EQ(count(svg, "class=\"number"), 64u);
  EXPECT_EQ(count(svg, ">7</text>"), 8u);
  EXPECT_NE(svg.find("<title>0F0: 0 ms to 1 ms, slack 0 ms</title>"), std::string::npos);
}

TEST(Svg, FramesTheCriticalPath) {
  // 0F0, 1F0, 2F0, all of rank 3, 2B7, 1B7, 0B7: 7 frames and 6 hops; and one in the legend.
  const std::string svg = write_as("svg", record_step("1f1b", {.ranks = 4, .microbatches = 8}));
  EXPECT_EQ(count(svg, "class=\"critical\""), 7u + 6u + 1u);
}

TEST(Svg, DrawsChunksInTonesOfOneColour) {
  const std::string svg =
      write_as("svg", record_step("interleaved", {.ranks = 2, .chunks = 3, .microbatches = 4}));
  for (const std::string tone : {".F0 {", ".F1 {", ".F2 {", ".B0 {", ".B2 {"})
    EXPECT_EQ(count(svg, tone), 1u) << tone;
}

TEST(Svg, FramesOverlappedPairs) {
  const RecordedStep step = record_step("dualpipe", {.ranks = 4, .microbatches = 8});
  std::size_t pairs = 0;
  for (const RankOrder& ops : step.schedule->order)
    for (const Op& op : ops) pairs += op.pairing == Pairing::kFirst;
  EXPECT_EQ(count(write_as("svg", step), "class=\"pair\""), pairs + 1);  // and the legend's
}

TEST(Svg, StaysSmallForLongSteps) {
  const std::string svg = write_as("svg", record_step("1f1b", {.ranks = 64, .microbatches = 512}));
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 2'000'000u);
}

TEST(SvgCanvas, WritesLengthsShortly) {
  EXPECT_EQ(traces::format_pixels(3), "3");
  EXPECT_EQ(traces::format_pixels(12.5), "12.5");
  EXPECT_EQ(traces::format_pixels(1.0 / 3), "0.33");
}

}  // namespace
}  // namespace bubblescope::tests
