// Tests profiles of several ranks that were merged into one file.
#include "traces/measured/merged_profiles.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/error_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/chrome_events.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

/// An event of PyTorch's profiler.
std::string event(const std::string& category, const std::string& name, const std::string& pid,
                  int start, int duration) {
  return R"({"ph":"X","cat":")" + category + R"(","name":")" + name + R"(","pid":)" + pid +
         R"(,"tid":1,"ts":)" + std::to_string(start) + R"(,"dur":)" + std::to_string(duration) +
         R"(,"args":{}},)";
}

/// Two ranks in the processes 31 and 30, named by their ranks, whose forwards wait for their input:
/// that of rank 1 computes from 10 to 20 although its annotation begins at 0.
std::string events_of_ranks() {
  std::string text;
  for (const int rank : {0, 1}) {
    const std::string pid = std::to_string(31 - rank);
    const std::string stage = "PP:" + std::to_string(rank);
    text += R"({"ph":"M","name":"process_name","tid":0,"pid":)" + pid +
            R"(,"args":{"name":"Rank )" + std::to_string(rank) + R"("}},)";
    text += event("user_annotation", "ProfilerStep#1", pid, 0, 100);
    text += event("user_annotation", stage + "F0", pid, 0, 10 + 10 * rank);
    text += event("cpu_op", "aten::mm", pid, 10 * rank, 10);
    text += event("user_annotation", stage + "B0", pid, 40 - 20 * rank, 20);
    text += event("cpu_op", "autograd::engine::evaluate_function: MmBackward0", pid, 40 - 20 * rank,
                  20);
  }
  return text;
}

traces::ObservedTrace parse(std::string events) {
  events.back() = ']';
  return traces::parse_trace({"all.json", "{\"traceEvents\":[" + events + "}"});
}

TEST(MergedProfiles, AreARankPerProcess) {
  const traces::ObservedTrace trace = parse(events_of_ranks());
  EXPECT_EQ(trace.source.name, "kineto");
  ASSERT_EQ(trace.recorders.size(), 2u);
  EXPECT_EQ(trace.recorders[0].rank, 0);
  EXPECT_EQ(trace.recorders[1].rank, 1);
  const traces::AssembledSteps read = traces::assemble_steps(trace);
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].program.ranks, 2);
  ASSERT_FALSE(read.remarks.notes.empty());
  EXPECT_NE(read.remarks.notes.back().find("the profiles of 2 processes"), std::string::npos);
}

// An op of rank 1 had not ended when its profile did.
TEST(MergedProfiles, KeepAllThatIsOfTheirProcess) {
  std::string events = events_of_ranks() + event("user_annotation", "PP:1F1", "30", 50, -1);
  events.back() = ']';
  traces::NameMatcher names;
  const std::vector<traces::ChromeEvents> profiles = traces::separate_profiles(
      traces::read_chrome_events("{\"traceEvents\":[" + events + "}", "all.json", names),
      "all.json");
  ASSERT_EQ(profiles.size(), 2u);
  EXPECT_EQ(profiles[0].negative_durations, 0);
  EXPECT_EQ(profiles[1].negative_durations, 1);
}

// The rows of devices have numbers of their own, which the processes of a host share.
TEST(MergedProfiles, WithRowsOfDevicesAreRefused) {
  EXPECT_TRUE(fails_with([&] { parse(events_of_ranks() + event("kernel", "gemm", "0", 5, 5)); },
                         "give the 2 files that the profiler wrote"));
}

// Rows of devices have running numbers, too, and threads may have process numbers of their own.
TEST(MergedProfiles, AreNotThoseOfADeviceOrAThread) {
  std::string kernel = event("kernel", "gemm", "0", 5, 5);
  kernel.replace(kernel.find(R"("args":{)"), 8, R"("args":{"Ev Idx":1)");
  const std::string events = event("user_annotation", "PP:0F0", "7", 0, 10) +
                             event("cpu_op", "aten::mm", "7", 0, 10) +
                             event("cpu_op", "aten::mm", "8", 0, 10) + kernel;
  EXPECT_EQ(parse(events).recorders.size(), 1u);
}

// Tools that filter or convert profiles leave the mark of their version out.
TEST(MergedProfiles, AreRecognizedByTheirCategories) {
  const std::string events =
      event("user_annotation", "PP:0F0", "7", 0, 10) + event("cpu_op", "aten::mm", "7", 0, 10);
  EXPECT_EQ(parse(events).source.name, "kineto");
}

}  // namespace
}  // namespace bubblescope::tests
