// Chrome traces, read back like in a viewer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<int, int>;  ///< pid and tid

Json trace_of(const RecordedStep& step) { return Json::parse(write_as("trace", step)); }

std::vector<Json> events_of(const Json& trace, const std::string& phase) {
  std::vector<Json> events;
  for (const Json& event : trace["traceEvents"])
    if (event["ph"] == phase) events.push_back(event);
  return events;
}

Thread thread_of(const Json& event) { return {event["pid"], event["tid"]}; }

/// Microseconds in the file, exact to the nanosecond.
Nanos nanos(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1000); }
Nanos end_of(const Json& slice) { return nanos(slice["ts"]) + nanos(slice["dur"]); }

/// Steps with messages that overlap, with pairs, with zero-length messages, with posts and waits.
std::vector<RecordedStep> many_steps() {
  UniformCost slow;
  slow.message = 2'500'001;
  UniformCost no_weights;
  no_weights.weight_grad = 0;
  std::vector<RecordedStep> steps;
  steps.push_back(record_step("1f1b", {.ranks = 4, .microbatches = 8}));
  steps.push_back(record_step("1f1b", {.ranks = 4, .microbatches = 8}, slow));
  steps.push_back(record_step("zb-h1", {.ranks = 4, .microbatches = 8}, no_weights));
  steps.push_back(record_step("zb-v", {.ranks = 4, .chunks = 2, .microbatches = 8}, slow));
  for (const Overlap overlap : {Overlap::kAtomic, Overlap::kFused})
    steps.push_back(record_step("dualpipe", {.ranks = 4, .microbatches = 8}, slow, {overlap}));
  for (const P2pMode mode : {P2pMode::kFifo, P2pMode::kHostSend, P2pMode::kBatched})
    steps.push_back(record_step("1f1b", {.ranks = 4, .microbatches = 8}, slow,
                                {.overlap = Overlap::kAtomic, .mode = mode}));
  return steps;
}

TEST(ChromeTrace, OverlapsNothingOnAThread) {
  for (const RecordedStep& step : many_steps()) {
    std::map<Thread, Nanos> busy_until;
    for (const Json& slice : events_of(trace_of(step), "X")) {
      EXPECT_GE(nanos(slice["ts"]), busy_until[thread_of(slice)]) << slice;
      busy_until[thread_of(slice)] = end_of(slice);
    }
  }
}

TEST(ChromeTrace, StandsInTheOrderOfTime) {
  for (const RecordedStep& step : many_steps()) {
    double last = 0;
    const Json trace = trace_of(step);
    for (const Json& event : trace["traceEvents"]) {
      if (event["ph"] == "M") continue;
      EXPECT_GE(event["ts"].get<double>(), last) << event;
      last = event["ts"];
    }
  }
}

TEST(ChromeTrace, LeadsEveryMessageToItsReceiver) {
  for (const RecordedStep& step : many_steps()) {
    const Json trace = trace_of(step);
    std::map<std::pair<Thread, Nanos>, Json> slice_at;
    std::size_t messages = 0;
    for (const Json& slice : events_of(trace, "X")) {
      slice_at[{thread_of(slice), nanos(slice["ts"])}] = slice;
      messages += slice["cat"] == "p2p";
    }
    std::map<int, Json> begins;
    for (const Json& flow : events_of(trace, "s")) {
      EXPECT_TRUE(begins.emplace(flow["id"], flow).second) << "a flow begins twice";
      EXPECT_TRUE(slice_at.contains({thread_of(flow), nanos(flow["ts"])})) << flow;
    }
    EXPECT_EQ(begins.size(), messages);
    const std::vector<Json> ends = events_of(trace, "f");
    EXPECT_EQ(ends.size(), messages);
    for (const Json& flow : ends) {
      EXPECT_EQ(flow["bp"], "e");
      const Json sent = slice_at[{thread_of(begins[flow["id"]]), nanos(begins[flow["id"]]["ts"])}];
      EXPECT_EQ(sent["args"]["Src Rank"], sent["pid"]);
      EXPECT_EQ(sent["args"]["Dst Rank"], flow["pid"]);
      EXPECT_LE(end_of(sent), nanos(flow["ts"])) << "received before it was sent";
      EXPECT_TRUE(slice_at.contains({thread_of(flow), nanos(flow["ts"])})) << flow;
    }
  }
}

TEST(ChromeTrace, HoldsEveryOpExactly) {
  for (const RecordedStep& step : many_steps()) {
    std::map<std::string, Json> slices;
    for (const Json& slice : events_of(trace_of(step), "X"))
      if (slice["tid"] == 1) slices[slice["args"]["op"]] = slice;
    for (InstructionId id = 0; id < step.program.size(); ++id) {
      const Instruction& instruction = step.program.instructions[id];
      if (!is_compute(instruction.op.kind)) continue;
      const Json& slice = slices[to_string(instruction.op)];
      EXPECT_EQ(slice["pid"], instruction.rank);
      EXPECT_EQ(nanos(slice["ts"]), step.timeline.start[id]);
      EXPECT_EQ(end_of(slice), step.timeline.end[id]);
      EXPECT_EQ(slice["args"]["slack_ns"], step.report.slack[id]);
      EXPECT_EQ(slice["args"]["mb_id"], instruction.op.microbatch);
    }
  }
}

TEST(ChromeTrace, CountsHeldActivationsUpToThePeakAndBackToNone) {
  for (const RecordedStep& step : many_steps()) {
    std::map<int, double> highest;
    std::map<int, double> last;
    for (const Json& counter : events_of(trace_of(step), "C")) {
      const double chunks = counter["args"]["chunks"];
      highest[counter["pid"]] = std::max(highest[counter["pid"]], chunks);
      last[counter["pid"]] = chunks;
    }
    for (std::int32_t rank = 0; rank < step.program.ranks; ++rank) {
      EXPECT_EQ(highest[rank], step.report.ranks[static_cast<std::size_t>(rank)].peak.chunks);
      EXPECT_EQ(last[rank], 0);
    }
  }
}

TEST(ChromeTrace, NamesRanksAndLanes) {
  UniformCost slow;
  slow.message = 2'500'000;
  const Json trace = trace_of(record_step("1f1b", {.ranks = 2, .microbatches = 4}, slow));
  std::map<Thread, std::string> names;
  for (const Json& event : events_of(trace, "M"))
    if (event["name"] == "thread_name") names[thread_of(event)] = event["args"]["name"];
  EXPECT_EQ((names[{0, 1}]), "compute");
  EXPECT_EQ((names[{0, 2}]), "send → rank 1");
  // F takes 1 ms, a message 2.5 ms: the second leaves while the first is on its way.
  EXPECT_EQ((names[{0, 3}]), "send → rank 1 (2)");
  EXPECT_EQ((names[{1, 2}]), "send → rank 0");
  EXPECT_EQ(events_of(trace, "X").front()["name"], "F mb0 s0");
}

TEST(ChromeTrace, TellsWhereItComesFrom) {
  RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 4});
  step.schedule.rename("mine \"quoted\" \\");
  const Json trace = trace_of(step);
  EXPECT_EQ(trace["displayTimeUnit"], "ms");
  EXPECT_EQ(trace["otherData"]["schedule"], step.schedule->name);
  EXPECT_EQ(trace["otherData"]["makespan_ns"], step.report.makespan);
}

TEST(ChromeTrace, ShowsHowLongPostedReceivesHoldUpTheirQueue) {
  UniformCost cost;
  cost.message = 500'000;
  const RecordedStep step = record_step("1f1b", {.ranks = 2, .microbatches = 2}, cost,
                                        {.overlap = Overlap::kAtomic, .mode = P2pMode::kFifo});
  // Rank 1's queue begins with the receive of 0F0: made after 1 ms, there 0.5 ms later.
  for (const Json& slice : events_of(trace_of(step), "X")) {
    if (slice["cat"] != "wait" || slice["pid"] != 1) continue;
    EXPECT_EQ(slice["name"], "wait RECV_F mb0 s1");
    EXPECT_EQ(nanos(slice["ts"]), 0);
    EXPECT_EQ(end_of(slice), 1'500'000);
    return;
  }
  FAIL() << "no wait on rank 1";
}

}  // namespace
}  // namespace bubblescope::tests
