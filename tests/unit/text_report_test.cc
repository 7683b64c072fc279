// The report for people, and its words and numbers.
#include "traces/reports/text_report.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/recorded_step.h"
#include "traces/text/time_axis.h"
#include "traces/text/wording.h"

namespace bubblescope::tests {
namespace {

TEST(TextReport, ExplainsOneFOneB) {
  // p = 4, m = 8, F = 1, B = 2: makespan 3 (m + p - 1) = 33, ratio (p - 1) / (m + p - 1) = 27.3 %.
  EXPECT_EQ(
      traces::write_text_report(record_step("1f1b", {.ranks = 4, .microbatches = 8}).record()),
      "makespan     33 ms  ideal 24 ms (work of the busiest rank)\n"
      "lower bound  33 ms  reached: no order of these ops is faster\n"
      "bubble       ratio 27.3 %  overhead 37.5 %  span rate 27.3 %  time 9 ms\n"
      "\n"
      "ms        busy    idle  warmup  depend  drain  peak  at   sends\n"
      "rank 0      24       9       0       9      0     4  0F3      8\n"
      "rank 1      24       9       1       6      2     3  1F2     16\n"
      "rank 2      24       9       2       3      4     2  2F1     16\n"
      "rank 3      24       9       3       0      6     1  3F0      8\n"
      "all     72.7 %  27.3 %   4.5 %  13.6 %  9.1 %     4          48\n"
      "\n"
      "critical path: 22 ops, 6 hops:  F 11 ms  B 22 ms  messages 0 ms\n"
      "most on rank 3: 24 ms\n"
      "  0F0 → 1F0 → 2F0 → 3F0 … 3B7 (16 ops, 24 ms) → 2B7 → 1B7 → 0B7\n"
      "highest peak: rank 0 holds 4 micro-batches at 0F3 (3 ms)\n");
}

TEST(Counted, NounsHaveTheirPlurals) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
  EXPECT_EQ(counted(1, "entry"), "1 entry");
  EXPECT_EQ(counted(3, "entry"), "3 entries");
}

TEST(TextReport, CountsMessagesOnTheCriticalPath) {
  // GPipe, p = m = 2, one message each way: 2 F, 2 messages of 0.5 ms and 3 B: 1+1 + 1 + ... = 10.
  UniformCost cost;
  cost.message = 500'000;
  const std::string report = traces::write_text_report(
      record_step("gpipe", {.ranks = 2, .microbatches = 2}, cost).record());
  EXPECT_NE(report.find("messages 1 ms"), std::string::npos) << report;
  EXPECT_NE(report.find("comm"), std::string::npos) << report;
}

TEST(TextReport, CutsTheMiddleOfLongPaths) {
  UniformCost cost;
  cost.message = 100'000;
  const std::string report = traces::write_text_report(
      record_step("1f1b", {.ranks = 8, .microbatches = 32}, cost).record());
  EXPECT_NE(report.find(" more … → "), std::string::npos) << report;
  EXPECT_NE(report.find("  0F0 → 1F0 → 2F0 → 3F0 → … "), std::string::npos) << report;
  EXPECT_NE(report.find("→ 3B31 → 2B31 → 1B31 → 0B31\n"), std::string::npos) << report;
}

TEST(TextReport, NamesChunksWhereARankHasSeveral) {
  const std::string report = traces::write_text_report(
      record_step("zb-v", {.ranks = 4, .chunks = 2, .microbatches = 8}).record());
  EXPECT_NE(report.find("holds 4 micro-batches (8 chunks)"), std::string::npos) << report;
}

TEST(ShortText, KeepsFourDigits) {
  EXPECT_EQ(traces::format_time(33'000'000), "33 ms");
  EXPECT_EQ(traces::format_time(1'250'000), "1.25 ms");
  EXPECT_EQ(traces::format_time(123'456'789), "123.5 ms");
  EXPECT_EQ(traces::format_time(980), "980 ns");
  EXPECT_EQ(traces::format_time(12'340'000'000), "12.34 s");
  EXPECT_EQ(traces::format_time(0), "0 ms");
}

TEST(PercentText, IsNeverZeroForWhatIsNot) {
  EXPECT_EQ(traces::format_percent(0.272727), "27.3 %");
  EXPECT_EQ(traces::format_percent(0.0001), "<0.1 %");
  EXPECT_EQ(traces::format_percent(0), "0 %");
  EXPECT_EQ(traces::format_percent(1), "100 %");
}

TEST(TickStep, IsRound) {
  EXPECT_EQ(traces::choose_tick_step(1), 1);
  EXPECT_EQ(traces::choose_tick_step(3), 5);
  EXPECT_EQ(traces::choose_tick_step(4'600'000), 5'000'000);
  EXPECT_EQ(traces::choose_tick_step(5'000'001), 10'000'000);
}

TEST(DecimalsFor, ShowsExactlyWhatFits) {
  const traces::TimeUnit ms{"ms", 1'000'000};
  EXPECT_EQ(traces::choose_decimals({1'000'000, 25'000'000}, ms), 0);
  EXPECT_EQ(traces::choose_decimals({1'500'000, 25'000'000}, ms), 1);
  EXPECT_EQ(traces::choose_decimals({1'234'567, 25'000'000}, ms), 2);  // 25.00: four digits
  EXPECT_EQ(traces::choose_decimals({1'234'567}, ms), 3);
}

TEST(ColumnsOf, CountsCharactersNotBytes) {
  EXPECT_EQ(traces::measure_columns("F0──·"), 5);
  EXPECT_EQ(traces::measure_columns("\x1b[48;5;26;38;5;231m12\x1b[0m"), 2);
}

TEST(Wrap, StartsLinesWithTheMark) {
  EXPECT_EQ(traces::wrap({"aaaa", "bbbb", "cccc"}, "  ", " → ", 14), "  aaaa → bbbb\n  → cccc\n");
}

}  // namespace
}  // namespace bubblescope::tests
