// A step that this program wrote is read back completely: the report is the same to the nanosecond.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/replay.h"
#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/recorded_step.h"
#include "traces/measured/assemble_steps.h"
#include "traces/reports/iterations.h"
#include "traces/reports/report_json.h"

namespace bubblescope::tests {
namespace {

traces::MeasuredStep read_back(const std::string& text) {
  std::vector<traces::MeasuredStep> steps =
      traces::assemble_steps(traces::parse_trace({"own.json", text})).steps;
  EXPECT_EQ(steps.size(), 1u);
  return std::move(steps.at(0));
}

std::string report_of(const RecordedStep& step) {
  return traces::write_report_json(step.report, step.program, step.timeline);
}

std::string report_of(const traces::MeasuredStep& step) {
  return traces::write_report_json(analyze(step.schedule, step.program, step.timeline),
                                   step.program, step.timeline);
}

void expect_round_trip(const RecordedStep& step, const std::string& format) {
  const traces::MeasuredStep again = read_back(write_as(format, step));
  EXPECT_EQ(report_of(again), report_of(step)) << format << " of " << step.schedule->name;
  EXPECT_EQ(replay_error(again.program, again.timeline), 0);
}

TEST(OwnTraces, NativeAndChromeFilesGiveTheReportBack) {
  const std::vector<RecordedStep> steps = every_schedule(uneven_cost());
  EXPECT_GT(steps.size(), 20u);
  for (const RecordedStep& step : steps)
    for (const char* format : {"save", "trace"}) expect_round_trip(step, format);
}

TEST(OwnTraces, ChromeFilesGiveEveryMessageModeBack) {
  for (const Named<P2pMode>& mode : kP2pModes)
    for (const Overlap overlap : {Overlap::kSerial, Overlap::kAtomic, Overlap::kFused})
      for (const char* name : {"interleaved", "dualpipev"})
        expect_round_trip(record_step(name, {.ranks = 2, .chunks = 2, .microbatches = 8},
                                      uneven_cost(), {overlap, mode.choice, 2}),
                          "trace");
}

TEST(OwnTraces, ChromeFilesGiveTheEndsOfStepsBack) {
  LowerOptions options;
  for (const Named<OptimizerMode>& mode : kOptimizerModes)
    for (const GradReduction reduction :
         {GradReduction::kNone, GradReduction::kOverlap, GradReduction::kSerial}) {
      options.update = {mode.choice, reduction};
      expect_round_trip(
          record_step("zb-h1", {.ranks = 2, .microbatches = 4}, uneven_cost(), options), "trace");
    }
}

TEST(OwnTraces, TheCsvHasTheTimes) {
  // It lacks the schedule's name; everything else equals a data-flow step.
  const RecordedStep step = record_step("zb-h1", {.ranks = 4, .microbatches = 8}, uneven_cost());
  traces::MeasuredStep again = read_back(write_as("timeline", step));
  again.schedule.rename("zb-h1");
  again.timeline.source = "simulated";
  EXPECT_EQ(report_of(again), report_of(step));
}

// Without its backwards a step of gpipe looks like one of forwards alone. The number of rows shows
// that they are missing, wherever the file was cut but in its last line's end.
TEST(OwnTraces, ACutCsvIsRefused) {
  for (const char* name : {"1f1b", "gpipe"}) {
    const std::string whole =
        write_as("timeline", record_step(name, {.ranks = 2, .microbatches = 2}));
    for (std::size_t length = 0; length + 1 < whole.size(); ++length)
      EXPECT_THROW(read_back(whole.substr(0, length)), Error) << name << "\n"
                                                              << whole.substr(0, length);
    EXPECT_NO_THROW(read_back(whole.substr(0, whole.size() - 1)));
  }
}

// The forwards that are left are a whole step of fewer micro-batches.
TEST(OwnTraces, ACsvThatIsCutAtItsFrontIsRefused) {
  const std::string whole =
      write_as("timeline", record_step("forward-only", {.ranks = 1, .microbatches = 4}));
  const std::string header = whole.substr(0, whole.find('\n') + 1);
  std::size_t row = header.size();
  for (int lost = 1; lost < 4; ++lost) {
    row = whole.find('\n', row) + 1;
    EXPECT_THROW(read_back(header + whole.substr(row)), Error) << lost;
  }
  EXPECT_NO_THROW(read_back(whole));
}

TEST(OwnTraces, ACsvWithoutARowOrWithOneTwiceIsRefused) {
  const std::string whole =
      write_as("timeline", record_step("1f1b", {.ranks = 2, .microbatches = 2}));
  const std::size_t begin = whole.find('\n', whole.find('\n') + 1) + 1;  // the second row
  const std::string row = whole.substr(begin, whole.find('\n', begin) + 1 - begin);
  std::string less = whole;
  less.erase(begin, row.size());
  EXPECT_NE(error_of([&] { read_back(less); }).find("rows of rank 0, which had"),
            std::string::npos);
  EXPECT_THROW(read_back(whole + row), Error);
}

// Earlier versions did not count rows, but ended each line.
TEST(OwnTraces, AnOldCsvWhoseLastLineDoesNotEndMayBeCut) {
  const std::string text =
      "rank,lane,op,kind,stage,microbatch,start_ns,end_ns\n0,compute,0F0,F,0,0,0,1000\n"
      "0,compute,0F1,F,0,1,1000,2000";
  EXPECT_EQ(traces::parse_trace({"old.csv", text}).remarks.doubts.size(), 1u);
  EXPECT_TRUE(traces::parse_trace({"old.csv", text + "\n"}).remarks.doubts.empty());
}

TEST(OwnTraces, AChromeFileWithoutItsScheduleIsPutTogether) {
  const RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 4}, uneven_cost());
  std::string text = write_as("trace", step);
  text.replace(text.find("native_schedule"), 15, "somebody's_note");
  traces::MeasuredStep again = read_back(text);
  again.schedule.rename("1f1b");
  again.timeline.source = "simulated";
  EXPECT_EQ(report_of(again), report_of(step));
}

TEST(OwnTraces, AMissingSliceIsNamed) {
  const RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2});
  std::string text = write_as("trace", step);
  text.replace(text.find("\"op\":\"1B1\""), 10, "\"op\":\"1B7\"");
  EXPECT_TRUE(fails_with([&] { read_back(text); }, "no slice for 1B1 of rank 1"));
}

// Traces of this program contain nothing outside the pipeline's ops, so there is no mean of whole
// steps.
TEST(OwnTraces, SayNothingOfWholeSteps) {
  traces::Iterations iterations;
  iterations.rows.resize(1);
  EXPECT_EQ(traces::write_whole_step_text(iterations), "");
}

}  // namespace
}  // namespace bubblescope::tests
