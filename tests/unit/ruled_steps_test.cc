// Tests Chrome traces whose steps are marked by slices that a rule names.
#include <gtest/gtest.h>

#include <string>

#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"
#include "traces/measured/name_rules.h"

namespace bubblescope::tests {
namespace {

const std::string kRules = R"rules({"format": "bubblescope-rules/1", "rules": [
  {"match": "(fwd|bwd) mb(\\d+) stage(\\d+)", "kind": "$1", "microbatch": "$2", "stage": "$3"},
  {"match": "iteration (\\d+)", "kind": "step", "step": "$1"},
  {"match": "iteration", "kind": "step"}]})rules";

std::string event(const std::string& name, int process, int start, int duration) {
  return R"({"ph":"X","name":")" + name + R"(","pid":)" + std::to_string(process) +
         R"(,"tid":0,"ts":)" + std::to_string(start) + R"(,"dur":)" + std::to_string(duration) +
         "}";
}

/// The events of a rank of two in a step: its ops take 10 µs each, 90 from the first to the last.
std::string ops_of(int rank, int start) {
  const std::string stage = " mb0 stage" + std::to_string(rank);
  return event("fwd" + stage, rank, start + 10 * rank, 10) + "," +
         event("bwd" + stage, rank, start + 80 - 20 * rank, 10);
}

std::vector<traces::WholeStep> read(const std::string& events) {
  const traces::NameRules rules = traces::NameRules::parse(kRules, "rules.json");
  const std::string text = "{\"traceEvents\":[" + events + "]}";
  return traces::assemble_steps(traces::parse_trace({"run.json", text, &rules})).whole_steps;
}

// Rank 1 enters each iteration 95 µs before rank 0, which then still runs its backward of the one
// before. Each takes 170 µs, of which the pipeline is 90.
TEST(RuledSteps, AreWholeSteps) {
  std::string events;
  for (const int step : {7, 8})
    for (const int rank : {0, 1}) {
      const int start = 1000 + 170 * step;
      events += (events.empty() ? "" : ",") + ops_of(rank, start) + "," +
                event("iteration " + std::to_string(step), rank, start - 95 * rank, 170);
    }
  const std::vector<traces::WholeStep> steps = read(events);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].step, 7);
  EXPECT_EQ(steps[0].whole, 170'000);
  EXPECT_EQ(steps[0].pipeline, 90'000);
}

// Every process counts its own.
TEST(RuledSteps, AreCountedWithoutANumber) {
  std::string events;
  for (const int rank : {0, 1})
    for (const int step : {0, 1})
      events += (events.empty() ? "" : ",") + ops_of(rank, 100 * step) + "," +
                event("iteration", rank, 100 * step, 95);
  const std::vector<traces::WholeStep> steps = read(events);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].whole, 95'000);
}

// Slices may also begin and end by events of their own.
TEST(RuledSteps, MayBeginAndEndByTwoEvents) {
  const auto bound = [](const char* phase, int process, int at) {
    return std::string(R"({"ph":")") + phase + R"(","name":"iteration 3","pid":)" +
           std::to_string(process) + R"(,"tid":1,"ts":)" + std::to_string(at) + "}";
  };
  std::string events;
  for (const int rank : {0, 1})
    events += (events.empty() ? "" : ",") + bound("B", rank, 100) + "," + ops_of(rank, 110) + "," +
              bound("E", rank, 220);
  const std::vector<traces::WholeStep> steps = read(events);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 3);
  EXPECT_EQ(steps[0].whole, 120'000);
}

// The names of threads may follow the events of these.
TEST(RuledSteps, AndOpsMayBeNamedByTheirThreads) {
  const traces::NameRules rules = traces::NameRules::parse(
      R"rules({"format": "bubblescope-rules/1", "rules": [
        {"match": "comp", "thread": "(fwd|bwd) lane", "kind": "$1", "microbatch": "args.mb",
         "stage": "args.st"},
        {"match": "comp", "thread": "steps", "kind": "step", "step": "args.st"}]})rules",
      "rules.json");
  const auto comp = [](int process, int thread, int start, int duration, int number) {
    return R"({"ph":"X","name":"comp","pid":)" + std::to_string(process) + R"(,"tid":)" +
           std::to_string(thread) + R"(,"ts":)" + std::to_string(start) + R"(,"dur":)" +
           std::to_string(duration) + R"(,"args":{"mb":0,"st":)" + std::to_string(number) + "}},";
  };
  const auto lane = [](int process, int thread, const std::string& name) {
    return R"({"ph":"M","name":"thread_name","pid":)" + std::to_string(process) + R"(,"tid":)" +
           std::to_string(thread) + R"(,"args":{"name":")" + name + R"("}},)";
  };
  std::string text = "[";
  for (const int rank : {0, 1})
    text += comp(rank, 1, 10 * rank, 10, rank) + comp(rank, 2, 30 - 10 * rank, 10, rank) +
            comp(rank, 3, 0, 50, 6) + comp(rank, 4, 0, 50, 6) + lane(rank, 1, "fwd lane") +
            lane(rank, 2, "bwd lane") + lane(rank, 3, "steps");
  text.back() = ']';
  const traces::AssembledSteps read =
      traces::assemble_steps(traces::parse_trace({"run.json", text, &rules}));
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].program.ranks, 2);
  ASSERT_EQ(read.whole_steps.size(), 1u);
  EXPECT_EQ(read.whole_steps[0].step, 6);
  EXPECT_EQ(read.whole_steps[0].whole, 50'000);
}

}  // namespace
}  // namespace bubblescope::tests
