// The timeline drawn in the terminal. Expected drawings are typed in, so that readers see them.
#include "traces/drawings/drawing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "sim/ir/validate.h"
#include "tests/support/recorded_step.h"
#include "traces/reports/text_report.h"
#include "traces/schedules/text_schedule.h"
#include "traces/text/wording.h"

namespace bubblescope::tests {
namespace {

/// F = 1 ms, I = W = 1 ms, B = 2 ms per chunk.
UniformCost per_chunk(Nanos message = 0) {
  UniformCost cost;
  cost.per = UniformCost::Per::kChunk;
  cost.message = message;
  return cost;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string draw(const RecordedStep& step, const traces::DrawOptions& options = {}) {
  return traces::draw_timeline(step.record(), options);
}

int widest(const std::string& text) {
  int columns = 0;
  for (const std::string& line : lines_of(text))
    columns = std::max(columns, traces::measure_columns(line));
  return columns;
}

/// Counts UTF-8 bytes that are not a character of their own, or broken: 0 for text that a terminal
/// shows.
int broken_characters(const std::string& text) {
  int broken = 0;
  int expected = 0;
  for (const char byte : text) {
    const bool continues = (byte & 0xc0) == 0x80;
    if (continues != (expected > 0)) ++broken;
    if (continues)
      expected = std::max(0, expected - 1);
    else
      expected = (byte & 0xe0) == 0xc0 ? 1 : (byte & 0xf0) == 0xe0 ? 2 : 0;
  }
  return broken;
}

TEST(DrawTimeline, ShowsOneFOneB) {
  EXPECT_EQ(draw(record_step("1f1b", {.ranks = 4, .microbatches = 8})),
            "1f1b: 4 ranks, 8 micro-batches, simulated\n"
            "    ms  ╷0        ╷5        ╷10       ╷15       ╷20       ╷25       ╷30\n"
            "rank 0  F0F1F2F3············B0──F4B1──F5B2──F6B3──F7B4──··B5──··B6──··B7──\n"
            "rank 1  ··F0F1F2········B0──F3B1──F4B2──F5B3──F6B4──F7B5──··B6──··B7──····\n"
            "rank 2  ····F0F1····B0──F2B1──F3B2──F4B3──F5B4──F6B5──F7B6──··B7──········\n"
            "rank 3  ······F0B0──F1B1──F2B2──F3B3──F4B4──F5B5──F6B6──F7B7──············\n"
            "F forward  B backward  · idle  ─ continues\n");
}

TEST(DrawTimeline, WritesOddChunksInLowerCase) {
  // Two stages on each of two ranks: 15 ms, so 4 columns for each.
  const std::string drawing =
      draw(record_step("interleaved", {.ranks = 2, .chunks = 2, .microbatches = 2}, per_chunk()));
  EXPECT_NE(drawing.find("lower case: odd chunk"), std::string::npos);
  EXPECT_NE(drawing.find("F0──F1──f0──f1──"), std::string::npos) << drawing;
}

TEST(DrawTimeline, DoublesTheLineOfOverlappedPairs) {
  const std::string drawing =
      draw(record_text("0F0 0F1 0B0 0B1 | 1F0 (1F1;1B0)OVERLAP_F_B 1B1", per_chunk()));
  EXPECT_NE(drawing.find("F1══════B0══════════════B1──────────────"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("═ overlapped pair"), std::string::npos);
}

TEST(DrawTimeline, ShowsLastDigitsWhereTheNameDoesNotFit) {
  // 32 micro-batches on 8 ranks: 117 ms, at 2 columns per ms in 4 bands; F10 has no room for "10".
  const std::string drawing = draw(record_step("1f1b", {.ranks = 8, .microbatches = 32}));
  EXPECT_NE(drawing.find("──F0B4──F1B5──F2"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("short cells hold the last digits of their micro-batch"),
            std::string::npos);
}

TEST(DrawTimeline, BreaksLongStepsIntoEqualBands) {
  // A band begins with an axis: "ms" and its first tick.
  const std::string drawing = draw(record_step("1f1b", {.ranks = 8, .microbatches = 32}));
  int bands = 0;
  for (const std::string& line : lines_of(drawing)) bands += line.starts_with("    ms");
  EXPECT_EQ(bands, 4);
}

TEST(DrawTimeline, FillsColumnsInProportionWhereOpsAreTooShort) {
  const std::string drawing = draw(record_step("1f1b", {.ranks = 2, .microbatches = 1000}));
  // 3003 ms in 72 columns of 41.71 ms, each a third F and two thirds B.
  EXPECT_NE(drawing.find("BFBBFBBFBBFBBFBB"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("a column is 41.71 ms"), std::string::npos) << drawing;
}

TEST(DrawTimeline, StandsInColumns) {
  for (const std::string name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "dualpipe", "bfs"})
    for (const Nanos message : {Nanos{0}, Nanos{130'000}})
      for (const bool colour : {false, true}) {
        UniformCost cost;
        cost.message = message;
        const RecordedStep step = record_step(name, {.ranks = 8, .microbatches = 32}, cost);
        const std::string text =
            draw(step, {.colour = colour}) + traces::write_text_report(step.record());
        EXPECT_LE(widest(text), 80) << name << "\n" << text;
        EXPECT_EQ(broken_characters(text), 0) << name;
      }
}

TEST(DrawTimeline, FitsEightyColumnsWithChunks) {
  for (const std::string name : {"interleaved", "zb-v", "interleaved-zb", "dualpipev"}) {
    const RecordedStep step = record_step(name, {.ranks = 8, .chunks = 2, .microbatches = 32});
    EXPECT_LE(widest(draw(step) + traces::write_text_report(step.record())), 80) << draw(step);
  }
}

TEST(DrawTimeline, ShowsTheSameColumnsWithColours) {
  const RecordedStep step = record_step("1f1b", {.ranks = 4, .microbatches = 8});
  const std::vector<std::string> coloured = lines_of(draw(step, {.colour = true}));
  ASSERT_EQ(coloured.size(), 7u);
  // 33 ms of 2 columns each, after the label; the number is in the middle of its cell.
  for (std::size_t row = 2; row < 6; ++row)
    EXPECT_EQ(traces::measure_columns(coloured[row]), 8 + 66);
  EXPECT_TRUE(coloured[2].starts_with("rank 0  \x1b[48;5;26;38;5;231m0 \x1b[0m")) << coloured[2];
}

TEST(DrawTimeline, ClosesEveryColourOnItsLine) {
  const std::string drawing =
      draw(record_step("zb-v", {.ranks = 4, .chunks = 2, .microbatches = 8}), {.colour = true});
  for (const std::string& line : lines_of(drawing)) {
    bool open = false;
    for (std::size_t at = line.find('\x1b'); at != std::string::npos;
         at = line.find('\x1b', at + 1)) {
      const bool closes = line.compare(at, 4, "\x1b[0m") == 0;
      EXPECT_NE(open, !closes) << "nested or stray escape in " << line;
      open = !closes;
    }
    EXPECT_FALSE(open) << line;
  }
}

TEST(DrawTimeline, HasNoEscapesWithoutColours) {
  const RecordedStep step = record_step("dualpipe", {.ranks = 4, .microbatches = 8});
  EXPECT_EQ(draw(step).find('\x1b'), std::string::npos);
}

TEST(DrawTimeline, ShowsSixteenOfManyRanksAndSaysSo) {
  const RecordedStep step = record_step("1f1b", {.ranks = 64, .microbatches = 64});
  const auto rows = [](const std::string& text) {
    std::size_t count = 0;
    for (const std::string& line : lines_of(text)) count += line.starts_with("rank ");
    return count;
  };
  EXPECT_NE(draw(step).find("16 of 64 ranks; `all_ranks` shows every one"), std::string::npos);
  EXPECT_EQ(rows(traces::write_text_report(step.record())), 16u);
  EXPECT_EQ(rows(traces::write_text_report(step.record(), {.all_ranks = true})), 64u);
}

TEST(DrawTimeline, DrawsAnEmptyStep) {
  RecordedStep step{require_valid(traces::parse_schedule_text("0F0"))};
  step.schedule.rename("nothing");
  EXPECT_EQ(draw(step), "nothing runs in this step\n");
}

TEST(DrawTimeline, DrawsStepsOfAllSizesAtAllWidths) {
  UniformCost nothing;
  nothing.forward = nothing.input_grad = nothing.weight_grad = 0;
  UniformCost uneven;
  uneven.forward = 1;
  uneven.weight_grad = 7'777'777'777'777;
  uneven.message = 86'400'000'000'000;
  for (const UniformCost& cost : {nothing, uneven, UniformCost{}})
    for (const std::int32_t microbatches : {1, 3, 50})
      for (const int width : {1, 40, 80, 250}) {
        const RecordedStep step =
            record_step("zb-h1", {.ranks = 3, .microbatches = microbatches}, cost);
        const traces::DrawOptions options{.width = width};
        EXPECT_LE(widest(draw(step, options)), std::max(width, 80));
        for (const std::string format : {"svg", "trace", "dot"})
          EXPECT_FALSE(write_as(format, step).empty());
      }
}

TEST(DrawGrid, MarksTheCulprit) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B1 1F1 1B0");
  EXPECT_EQ(traces::draw_grid(schedule, validate(schedule)),
            "rank 0   0F0  0F1  0B0  0B1\n"
            "rank 1   1F0 >1B1< 1F1  1B0\n"
            "\n"
            "rank 1, position 1: 1B1 runs before its forward 1F1; move it after\n");
}

TEST(DrawGrid, MarksRanksWhereSomethingIsMissing) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1");
  const std::string grid = traces::draw_grid(schedule, validate(schedule));
  EXPECT_NE(grid.find("rank 1!  1F0"), std::string::npos) << grid;
  EXPECT_NE(grid.find("\nrank 1: 1B1 is missing"), std::string::npos) << grid;
}

TEST(DrawGrid, CutsLongRowsToWhatIsAroundTheCulprit) {
  Schedule schedule = record_step("gpipe", {.ranks = 2, .microbatches = 100}).schedule;
  std::swap(schedule.order[1][60], schedule.order[1][160]);
  const std::string grid = traces::draw_grid(schedule, validate(schedule));
  EXPECT_LE(widest(lines_of(grid)[1]), 80);
  EXPECT_NE(grid.find(">1B60<"), std::string::npos) << grid;
  EXPECT_TRUE(lines_of(grid)[1].starts_with("rank 1  … ")) << grid;
}

TEST(DrawGrid, ShowsRanksAroundProblemsWhereThereAreMany) {
  Schedule schedule = record_step("1f1b", {.ranks = 64, .microbatches = 64}).schedule;
  schedule.order[30].pop_back();
  const std::string grid = traces::draw_grid(schedule, validate(schedule));
  EXPECT_EQ(lines_of(grid)[1].substr(0, 7), "rank 29") << grid;
  EXPECT_EQ(lines_of(grid)[2].substr(0, 8), "rank 30!") << grid;
}

TEST(DrawGrid, ListsTwentyProblemsAndCountsTheRest) {
  Schedule schedule = record_step("gpipe", {.ranks = 2, .microbatches = 30}).schedule;
  schedule.order[1].clear();
  const std::string grid = traces::draw_grid(schedule, validate(schedule));
  EXPECT_NE(grid.find("further problems\n"), std::string::npos) << grid;
}

/// Measured steps begin some time after their clock, and people read times from the first op.
TEST(Drawing, AndReportsCountTimesFromTheFirstStart) {
  const RecordedStep simulated = record_step("1f1b", {.ranks = 2, .microbatches = 3});
  RecordedStep measured = simulated;
  constexpr Nanos kLate = 1'930'000;
  for (Nanos& time : measured.timeline.start) time += kLate;
  for (Nanos& time : measured.timeline.end) time += kLate;
  EXPECT_EQ(traces::write_text_report(measured.record()),
            traces::write_text_report(simulated.record()));
  for (const char* format : {"svg", "dot"})
    EXPECT_EQ(write_as(format, measured), write_as(format, simulated)) << format;
}

}  // namespace
}  // namespace bubblescope::tests
