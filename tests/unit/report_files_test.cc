// The report as json and csv: the contract of the command line.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "traces/reports/report_csv.h"
#include "traces/reports/report_json.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

struct Step {
  explicit Step(const std::string& text)
      : schedule(traces::parse_schedule_text(text, "1f1b")),
        program(std::get<Program>(lower(schedule))),
        timeline(simulate(program, spread({}, schedule))),
        report(analyze(schedule, program, timeline)) {}

  std::string json() const { return traces::write_report_json(report, program, timeline); }

  Schedule schedule;
  Program program;
  Timeline timeline;
  BubbleReport report;
};

// 1F1B, p = 2, m = 2, F = I = W = 1 ms: makespan (m+p-1)(F+B) = 9 ms, each rank busy m(F+B) = 6 ms,
// so the bubble is a third.
TEST(ReportJson, IsWrittenAsDocumented) {
  EXPECT_EQ(
      Step("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1").json(),
      R"({"format":"bubblescope-report/1","source":"simulated","schedule":"1f1b","pp":2,"vpp":1,"microbatches":2,
 "makespan_ns":9000000,
 "max_span_ns":9000000,
 "ideal_ns":6000000,
 "bubble":{"ratio":0.3333333333333333,"overhead":0.5,"span_rate":0.3333333333333333,"time_ns":3000000},
 "ranks":[
 {"rank":0,"busy_ns":6000000,"idle_ns":3000000,"first_start_ns":0,"last_end_ns":9000000,"sends":2,
  "peak_chunks":2,"peak_activations":2.0,"peak_units":2.0,"peak_at":"0F1",
  "busy_by_kind_ns":{"F":2000000,"I":0,"W":0,"B":4000000,"R":0,"send":0,"opt":0},
  "idle_by_cause_ns":{"warmup":0,"imbalance":0,"dependency":3000000,"communication":0,"memory":0,"drain":0,"sync":0},"max_slack_ns":2000000},
 {"rank":1,"busy_ns":6000000,"idle_ns":3000000,"first_start_ns":1000000,"last_end_ns":7000000,"sends":2,
  "peak_chunks":1,"peak_activations":1.0,"peak_units":1.0,"peak_at":"1F0",
  "busy_by_kind_ns":{"F":2000000,"I":0,"W":0,"B":4000000,"R":0,"send":0,"opt":0},
  "idle_by_cause_ns":{"warmup":1000000,"imbalance":0,"dependency":0,"communication":0,"memory":0,"drain":2000000,"sync":0},"max_slack_ns":1000000}],
 "critical_path":[
 {"rank":0,"op":"0F0","start_ns":0,"end_ns":1000000},
 {"rank":0,"op":"0SEND_F0","start_ns":1000000,"end_ns":1000000},
 {"rank":1,"op":"1F0","start_ns":1000000,"end_ns":2000000},
 {"rank":1,"op":"1B0","start_ns":2000000,"end_ns":4000000},
 {"rank":1,"op":"1F1","start_ns":4000000,"end_ns":5000000},
 {"rank":1,"op":"1B1","start_ns":5000000,"end_ns":7000000},
 {"rank":1,"op":"1SEND_B1","start_ns":7000000,"end_ns":7000000},
 {"rank":0,"op":"0B1","start_ns":7000000,"end_ns":9000000}],
 "lower_bound_ns":9000000}
)");
}

TEST(ReportJson, IsValidJsonWhateverTheNames) {
  Step step("0F0");
  step.report.schedule = "a \"b\" \\ \n \x01 \xff \xc3\xa9";
  const auto json = nlohmann::json::parse(step.json());
  EXPECT_EQ(json["schedule"], "a \"b\" \\ \n \x01 \xEF\xBF\xBD \xc3\xa9");
}

TEST(ReportJson, WritesHalfChunksBytesAndNoInfinity) {
  Step step("0F0");
  step.report.ranks[0].peak.chunks = 3.5;
  step.report.ranks[0].peak.bytes = Bytes{1} << 40;
  step.report.bubble->overhead = 1.0 / 0.0;
  const auto json = nlohmann::json::parse(step.json());
  EXPECT_EQ(json["ranks"][0]["peak_chunks"], 3.5);
  EXPECT_EQ(json["ranks"][0]["peak_memory_bytes"], Bytes{1} << 40);
  EXPECT_TRUE(json["bubble"]["overhead"].is_null());
  EXPECT_TRUE(json["bubble"]["ratio"].is_number_float());
}

TEST(ReportCsv, HasOneRowPerRank) {
  EXPECT_EQ(
      traces::write_report_csv(Step("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1").report),
      "schedule,rank,busy_ns,idle_ns,first_start_ns,last_end_ns,sends,peak_chunks,"
      "peak_activations,peak_units,peak_memory_bytes,busy_F_ns,busy_I_ns,busy_W_ns,busy_B_ns,"
      "busy_R_ns,busy_send_ns,busy_opt_ns,idle_warmup_ns,idle_imbalance_ns,idle_dependency_ns,"
      "idle_communication_ns,idle_memory_ns,idle_drain_ns,idle_sync_ns\n"
      "1f1b,0,6000000,3000000,0,9000000,2,2,2,2,,2000000,0,0,4000000,0,0,0,0,0,3000000,0,0,0,0\n"
      "1f1b,1,6000000,3000000,1000000,7000000,2,1,1,1,,2000000,0,0,4000000,0,0,0,1000000,0,0,0,0,"
      "2000000,0\n");
}

TEST(ReportCsv, QuotesNamesThatNeedIt) {
  Step step("0F0");
  step.report.schedule = "a,\"b\"";
  EXPECT_NE(traces::write_report_csv(step.report).find("\n\"a,\"\"b\"\"\",0,"), std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
