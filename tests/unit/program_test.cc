// Lowering and the dataflow pass, on schedules small enough to time by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/program_digest.h"
#include "sim/ir/program_draft.h"
#include "tests/support/as_written.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Program lowered(const Schedule& schedule, Overlap overlap = Overlap::kAtomic) {
  LowerOptions options;
  options.overlap = overlap;
  return std::get<Program>(lower(schedule, options));
}

/// "0F0" -> its start, for compute ops.
std::map<std::string, Nanos> starts(const Program& program, const CostModel& costs) {
  const Timeline timeline = simulate(program, costs);
  std::map<std::string, Nanos> starts;
  for (InstructionId id = 0; id < program.size(); ++id)
    starts[to_string(program.instructions[id].op)] = timeline.start[id];
  return starts;
}

CostModel costs_of(const Schedule& schedule, Nanos forward, Nanos input_grad, Nanos weight_grad,
                   Nanos message) {
  UniformCost cost;
  cost.forward = forward;
  cost.input_grad = input_grad;
  cost.weight_grad = weight_grad;
  cost.message = message;
  cost.per = UniformCost::Per::kChunk;
  return spread(cost, schedule);
}

TEST(Lower, AddsOneMessagePerCrossing) {
  const Program program = lowered(traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1"));
  EXPECT_EQ(program.size(), 8u + 4u);  // two activations down, two gradients up
}

TEST(Lower, AddsNoMessageWithinARank) {
  // A V: stages 0 and 3 on rank 0, 1 and 2 on rank 1; the message from 1 to 2 stays on its rank.
  const Program program = lowered(traces::parse_schedule_text("0F0 3F0 3B0 0B0 | 1F0 2F0 2B0 1B0"));
  EXPECT_EQ(program.size(), 8u + 4u);
}

TEST(Lower, PutsEveryDependencyBeforeItsUser) {
  const Program program =
      lowered(traces::parse_schedule_text("0F0 0F1 0I0 0I1 0W0 0W1 | 1F0 1I0 1F1 1I1 1W0 1W1"));
  for (InstructionId id = 0; id < program.size(); ++id)
    for (const InstructionId dependency : program.dependencies_of(id)) EXPECT_LT(dependency, id);
}

TEST(Lower, ExplainsADeadlock) {
  const auto result = lower(traces::parse_schedule_text("0F0 0B0 0F1 0B1 | 1F1 1B1 1F0 1B0"));
  ASSERT_TRUE(std::holds_alternative<Deadlock>(result));
  const std::string text = to_string(std::get<Deadlock>(result));
  EXPECT_NE(text.find("rank 0 at 0B0 waits for"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 1 at 1F1 waits for"), std::string::npos) << text;
}

TEST(ProgramDraft, SortsDependenciesThatWereAddedLater) {
  ProgramDraft draft(2, 2);
  draft.add({forward(0, 0), 0, 0, 0});
  draft.wait_for(1);
  draft.add({forward(1, 0), 1, 1, 1});
  const Program program = std::get<Program>(std::move(draft).finish());
  EXPECT_EQ(program.instructions[0].rank, 1);
  EXPECT_EQ(program.dependencies_of(1)[0], 0u);
}

TEST(Simulate, PipelineFillsOneStageAfterTheOther) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1");
  auto at = starts(lowered(schedule), costs_of(schedule, 10, 10, 10, 3));
  EXPECT_EQ(at["1F0"], 10 + 3);           // F(0,0), then the message
  EXPECT_EQ(at["1B0"], 10 + 3 + 10);      // its own forward
  EXPECT_EQ(at["0B0"], 10 + 3 + 30 + 3);  // 1B0 takes i + w = 20
  EXPECT_EQ(at["1F1"], 43);               // rank 1 was busy until then
}

TEST(Simulate, SplitBackwardFreesThePreviousStageEarlier) {
  const Schedule full = traces::parse_schedule_text("0F0 0B0 | 1F0 1B0");
  const Schedule split = traces::parse_schedule_text("0F0 0I0 0W0 | 1F0 1I0 1W0");
  EXPECT_EQ(starts(lowered(full), costs_of(full, 10, 10, 10, 0))["0B0"], 40);
  EXPECT_EQ(starts(lowered(split), costs_of(split, 10, 10, 10, 0))["0I0"], 30);
}

// Rank 0 runs F of micro-batch 1 overlapped with B of micro-batch 0, whose gradient arrives at 10 +
// 10 + 20 = 40 (F00, F10, B10).
constexpr const char* kOverlapped = "0F0 (0F1;0B0)OVERLAP_F_B 0B1 | 1F0 1B0 1F1 1B1";

TEST(Simulate, SerialPairStartsWithItsFirstHalf) {
  const Schedule schedule = traces::parse_schedule_text(kOverlapped);
  auto at = starts(lowered(schedule, Overlap::kSerial), costs_of(schedule, 10, 10, 10, 0));
  EXPECT_EQ(at["0F1"], 10);
  EXPECT_EQ(at["0B0"], 40);
  EXPECT_EQ(at["1F1"], 40);  // rank 1 is busy with 1B0 until 40
}

TEST(Simulate, AtomicPairWaitsForBothInputs) {
  const Schedule schedule = traces::parse_schedule_text(kOverlapped);
  auto at = starts(lowered(schedule, Overlap::kAtomic), costs_of(schedule, 10, 10, 10, 0));
  EXPECT_EQ(at["0F1"], 40);
  EXPECT_EQ(at["0B0"], 50);
  EXPECT_EQ(at["1F1"], 50);  // the forward's result is available when the forward ends
}

TEST(Simulate, FusedPairGivesBothResultsAtItsEnd) {
  const Schedule schedule = traces::parse_schedule_text(kOverlapped);
  auto at = starts(lowered(schedule, Overlap::kFused), costs_of(schedule, 10, 10, 10, 0));
  EXPECT_EQ(at["0F1"], 40);
  EXPECT_EQ(at["1F1"], 70);  // 40 + 10 + 20
}

TEST(Simulate, OverlapCostShortensThePair) {
  const Schedule schedule = traces::parse_schedule_text(kOverlapped);
  CostModel costs = costs_of(schedule, 10, 10, 10, 0);
  costs.stages[0].overlapped_pair = 24;  // instead of 10 + 20
  auto at = starts(lowered(schedule, Overlap::kFused), costs);
  EXPECT_EQ(at["1F1"], 40 + 24);
}

TEST(Spread, LosesNoNanosecond) {
  Schedule schedule = traces::parse_schedule_text("0F0 1F0 2F0 2B0 1B0 0B0");
  schedule.shape.chunks = 3;
  UniformCost cost;
  cost.forward = 11;
  const CostModel model = spread(cost, schedule);
  EXPECT_EQ(model.stages[0].forward, 4);  // the first 11 mod 3 chunks take one more
  EXPECT_EQ(model.stages[1].forward, 4);
  EXPECT_EQ(model.stages[2].forward, 3);
}

TEST(Recompute, MustEndBeforeItsBackward) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0R0 0B0 | 1F0 1R0 1B0");
  auto at = starts(lowered(schedule), costs_of(schedule, 10, 10, 10, 0));
  EXPECT_EQ(at["0R0"], 10);  // it does not wait for the gradient
  EXPECT_EQ(at["1B0"], 30);
}

TEST(ProgramDigest, DiffersForEveryField) {
  const Program program = lowered(traces::parse_schedule_text("0F0 0B0 | 1F0 1B0"));
  const std::vector<std::function<void(Program&)>> changes{
      [](Program& other) { ++other.ranks; },
      [](Program& other) { ++other.lanes[0].rank; },
      [](Program& other) { other.lanes[0].name += '2'; },
      [](Program& other) { ++other.instructions[1].op.microbatch; },
      [](Program& other) { ++other.instructions[1].lane; },
      [](Program& other) { ++other.instructions[1].rank; },
      [](Program& other) { ++other.instructions[1].peer; },
      [](Program& other) { other.instructions[1].role = Role::kPost; },
      [](Program& other) { ++other.dependency_begin[1]; },
      [](Program& other) { ++other.dependencies[0]; }};
  std::set<std::uint64_t> digests{digest_program(program)};
  for (const auto& change : changes) {
    Program other = program;
    EXPECT_EQ(digest_program(other), digest_program(program));
    change(other);
    digests.insert(digest_program(other));
  }
  EXPECT_EQ(digests.size(), 1 + changes.size());
}

TEST(Deadlocks, NameTheFirstSliceBesideOthers) {
  const Op first{0, 0, 0, OpKind::kForward};
  const Op second{0, 0, 1, OpKind::kForward};
  const Op whole{1, 0, 0, OpKind::kBackward};
  EXPECT_EQ(to_string(Deadlock{{0, second, 0, first}}), "rank 0 at 0F0.1 waits for 0F0.0");
  EXPECT_EQ(to_string(Deadlock{{0, first, 1, whole}}), "rank 0 at 0F0 waits for 1B0 of rank 1");
}

}  // namespace
}  // namespace bubblescope::tests
