// Tests that two runs of a job are no data-parallel replicas.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "sim/ir/error.h"
#include "tests/support/trace_refusal.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/expect_one_run.h"

namespace bubblescope::tests {
namespace {

/// A step of two ranks that begins at `start`, in microseconds. `arguments` are those of every op.
std::string run_at(std::int64_t start, int first_process = 0, const std::string& arguments = "") {
  std::string events;
  const auto add = [&](const std::string& name, int rank, int at, int duration) {
    events += (events.empty() ? "" : ",") + std::string(R"({"ph":"X","tid":0,"name":")") + name +
              R"(","pid":)" + std::to_string(first_process + rank) + R"(,"ts":)" +
              std::to_string(start + at) + R"(,"dur":)" + std::to_string(duration) +
              R"(,"args":{"step":4)" + arguments + R"(,"pp_rank":)" + std::to_string(rank) + "}}";
  };
  for (int rank = 0; rank < 2; ++rank) {
    add(std::to_string(rank) + "F0", rank, 10 * rank, 10);
    add(std::to_string(rank) + "B0", rank, 40 - 20 * rank, 20);
  }
  return events;
}

traces::ObservedTrace parse(const std::string& file, const std::string& events) {
  return traces::parse_trace({file, "[" + events + "]"});
}

traces::AssembledSteps read_both(std::int64_t second) {
  traces::ObservedTrace trace = parse("monday.json", run_at(0));
  traces::append(trace, parse("tuesday.json", run_at(second)));
  return traces::assemble_steps(std::move(trace));
}

TEST(TwoRuns, InOneFileAreRefused) {
  const std::string both = refusal(parse("t.json", run_at(0) + "," + run_at(100, 2)));
  EXPECT_EQ(both,
            "t.json: its pipelines never run at the same time, so they are two runs and not "
            "data-parallel replicas; split the file by run and give one part");
  EXPECT_EQ(refusal(parse("t.json", run_at(0) + "," + run_at(59, 2))), "");
}

// The first run has a file of its own besides the one that both share.
TEST(TwoRuns, InOneOfTheirFilesAreRefused) {
  traces::ObservedTrace trace;
  for (const char* file : {"a.json", "b.json", "b.json"})
    trace.recorders.emplace_back().where = file;
  for (std::int32_t at = 0; at < 3; ++at) {
    traces::ObservedOp& observed = trace.ops.emplace_back();
    observed.recorder = at;
    observed.replica = at / 2;
    observed.start = 100 * observed.replica;
    observed.end = observed.start + 10;
  }
  EXPECT_TRUE(fails_with([&] { traces::expect_replicas_together(trace); },
                         "b.json: its pipelines never run"));
}

// Replicas that the ops state may have been recorded one after another.
TEST(TwoRuns, ThatAreStatedAsReplicasAreAReservation) {
  const traces::AssembledSteps read = traces::assemble_steps(
      parse("t.json", run_at(0, 0, R"(,"dp":0)") + "," + run_at(100, 2, R"(,"dp":1)")));
  ASSERT_FALSE(read.remarks.doubts.empty());
  EXPECT_NE(read.remarks.doubts[0].find("replica 0 (t.json) ends before replica 1"),
            std::string::npos)
      << read.remarks.doubts[0];
}

// Files may have clocks of their own.
TEST(TwoRuns, InFilesAreTheFirstReservation) {
  const traces::AssembledSteps apart = read_both(100);
  EXPECT_EQ(apart.steps.size(), 2u);
  ASSERT_FALSE(apart.remarks.doubts.empty());
  EXPECT_NE(apart.remarks.doubts[0].find(
                "replica 0 (monday.json) ends before replica 1 (tuesday.json) begins"),
            std::string::npos)
      << apart.remarks.doubts[0];
  EXPECT_TRUE(read_both(30).remarks.doubts.empty());
}

// Clocks of two hosts that tell the date differ by seconds at most.
TEST(TwoRuns, OfDifferentHoursAreRefused) {
  constexpr std::int64_t kToday = 1'700'000'000'000'000;
  const auto after = [&](std::int64_t seconds) {
    traces::ObservedTrace trace = parse("monday.json", run_at(kToday));
    traces::append(trace, parse("tuesday.json", run_at(kToday + seconds * 1'000'000)));
    return refusal(std::move(trace));
  };
  EXPECT_NE(after(3600).find("monday.json and tuesday.json are of pipelines that never run"),
            std::string::npos)
      << after(3600);
  EXPECT_EQ(after(30), "");
}

}  // namespace
}  // namespace bubblescope::tests
