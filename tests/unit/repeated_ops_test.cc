// Tests why a step is refused that holds an op twice.
#include "traces/measured/repeated_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/chrome_text.h"
#include "tests/support/error_text.h"
#include "traces/files/trace_format.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

/// An op of the only rank.
struct TimedOp {
  const char* name = "";
  int microbatch = 0;
  int start = 0;
  int duration = 10;
};

traces::AssembledSteps assemble(const std::vector<TimedOp>& ops, const std::string& further = "") {
  Events events;
  for (const TimedOp& op : ops)
    events.slice(op.name, 0, 0, 1'000 * op.start, 1'000 * op.duration,
                 R"("step":0,"microbatch":)" + std::to_string(op.microbatch) + further);
  return traces::assemble_steps(traces::parse_trace({"t.json", events.list()}));
}

std::string refusal_of(const std::vector<TimedOp>& ops, const std::string& further = "") {
  return error_of([&] { assemble(ops, further); });
}

void expect_part(const std::string& said, const std::string& part) {
  EXPECT_NE(said.find(part), std::string::npos) << said;
}

// Two stages on the rank, of two micro-batches each.
const std::vector<TimedOp> kTwoChunks{{"forward", 0, 0},   {"forward", 1, 10},  {"forward", 0, 20},
                                      {"forward", 1, 30},  {"backward", 0, 40}, {"backward", 1, 50},
                                      {"backward", 0, 60}, {"backward", 1, 70}};

TEST(RepeatedOps, BeforeTheFirstBackwardAreOfChunks) {
  const std::string said = refusal_of(kTwoChunks);
  expect_part(said, "0F0 runs more than once");
  expect_part(said, "args.model_chunk");
  // Ops that state their stage are of no other.
  expect_part(refusal_of(kTwoChunks, R"(,"stage":0)"), "several runs of the pipeline");
}

// As many forwards as in three chunks, but those between two runs have no backward.
TEST(RepeatedOps, OfAnEvaluationAreNotOfChunks) {
  expect_part(refusal_of({{"forward", 0, 0},
                          {"forward", 1, 10},
                          {"backward", 0, 20},
                          {"backward", 1, 30},
                          {"forward", 0, 40},
                          {"forward", 1, 50},
                          {"forward", 0, 60},
                          {"forward", 1, 70},
                          {"backward", 0, 80},
                          {"backward", 1, 90}}),
              "several runs of the pipeline");
}

// Gradients are accumulated over two runs of two micro-batches each.
TEST(RepeatedOps, AfterTheBackwardsAreOfTheNextRun) {
  const traces::AssembledSteps read = assemble({{"forward", 0, 0},
                                                {"forward", 1, 10},
                                                {"backward", 0, 20},
                                                {"backward", 1, 30},
                                                {"forward", 0, 40},
                                                {"forward", 1, 50},
                                                {"backward", 0, 60},
                                                {"backward", 1, 70}});
  ASSERT_EQ(read.steps.size(), 1u);
  EXPECT_EQ(read.steps[0].schedule->shape.microbatches, 4);
}

TEST(RepeatedOps, BeforeTheirBackwardsAreRecomputation) {
  expect_part(refusal_of({{"forward", 0, 0},
                          {"forward", 1, 10},
                          {"forward", 0, 20},
                          {"backward", 0, 30},
                          {"forward", 1, 40},
                          {"backward", 1, 50}}),
              "directly before its backward, as recomputation does");
  // The rank waits for its gradient.
  expect_part(refusal_of({{"forward", 0, 0}, {"forward", 0, 50}, {"backward", 0, 60}}),
              "directly before its backward, as recomputation does");
}

TEST(RepeatedOps, WithinTheirBackwardsAreRecomputation) {
  expect_part(refusal_of({{"forward", 0, 0},
                          {"forward", 1, 10},
                          {"backward", 0, 20, 20},
                          {"forward", 0, 21, 9},
                          {"backward", 1, 40, 20},
                          {"forward", 1, 41, 9}}),
              "its backward contains it once more");
}

// Two ranks in one thread: the second one runs each forward 1 ms after the first one ends.
TEST(RepeatedOps, ThatOverlapOthersAreOfSeveralRanks) {
  expect_part(refusal_of({{"forward", 0, 0},
                          {"forward", 1, 10},
                          {"forward", 0, 11},
                          {"forward", 1, 21},
                          {"backward", 0, 31},
                          {"backward", 1, 41},
                          {"backward", 0, 42},
                          {"backward", 1, 52}}),
              "state args.pp_rank of every op");
}

}  // namespace
}  // namespace bubblescope::tests
