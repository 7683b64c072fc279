// Reports as csv, read back.
#include "traces/reports/read_report_csv.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/error_text.h"
#include "tests/support/recorded_step.h"
#include "traces/reports/report_csv.h"

namespace bubblescope::tests {
namespace {

TEST(ReadReportCsv, GivesTheNumbersOfTheReport) {
  const RecordedStep step =
      record_step("zb-h1", {.ranks = 4, .microbatches = 8}, uneven_cost(10'000));
  const std::string csv = traces::write_report_csv(step.report, {{"step_ns", "99000000"}});
  const auto numbers = traces::read_csv_report_numbers(csv, "a.csv");
  ASSERT_TRUE(numbers);
  EXPECT_EQ(numbers->at("makespan_ns"), static_cast<double>(step.report.makespan));
  EXPECT_EQ(numbers->at("ideal_ns"), static_cast<double>(step.report.ideal));
  EXPECT_EQ(numbers->at("max_span_ns"), static_cast<double>(step.report.max_span));
  EXPECT_NEAR(numbers->at("bubble_ratio"), step.report.bubble->ratio, 1e-9);
  EXPECT_NEAR(numbers->at("bubble_overhead"), step.report.bubble->overhead, 1e-9);
  EXPECT_NEAR(numbers->at("bubble_span_rate"), step.report.bubble->span_rate, 1e-9);
  EXPECT_EQ(numbers->at("step_ns"), 99000000);
}

TEST(ReadReportCsv, AReportThatIsNotTrustedHasNoBubble) {
  const RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2});
  const auto numbers = traces::read_csv_report_numbers(
      traces::write_report_csv(step.report, {{"trust", "none"}}), "a.csv");
  ASSERT_TRUE(numbers);
  EXPECT_FALSE(numbers->contains("bubble_ratio"));
}

TEST(ReadReportCsv, RefusesOtherTables) {
  EXPECT_FALSE(traces::read_csv_report_numbers("rank,lane,op\n0,compute,0F0\n", "a.csv"));
  EXPECT_FALSE(traces::read_csv_report_numbers("", "a.csv"));
  EXPECT_EQ(error_of([&] {
              traces::read_csv_report_numbers(
                  "schedule,rank,busy_ns,idle_ns,first_start_ns\nx,0,a\n", "a");
            }),
            "a: line 2 has 3 cells, but the header 5");
}

}  // namespace
}  // namespace bubblescope::tests
