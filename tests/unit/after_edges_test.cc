// After edges: what they make ops wait for, how files state them, what is refused.
#include "sim/ir/after_edges.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "sim/analysis/lower_bound.h"
#include "sim/engine/simulate.h"
#include "sim/ir/registry.h"
#include "sim/ir/validate.h"
#include "sim/model/cost_model.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "tests/support/measured_schedule.h"
#include "tests/support/problem_text.h"
#include "traces/files/format.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// 1F1B on two ranks with two micro-batches. F and B of every stage take 1 and 2 ms.
Schedule two_by_two(std::vector<AfterEdge> after) {
  Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1");
  schedule.name = "edges";
  schedule.after = std::move(after);
  return schedule;
}

constexpr std::array<Overlap, 3> kEveryOverlap{Overlap::kSerial, Overlap::kAtomic, Overlap::kFused};

Nanos start_of(const Schedule& schedule, const Op& op, Overlap overlap = Overlap::kAtomic) {
  const Program program = lower_or_throw(schedule, overlap);
  UniformCost cost;
  cost.output_layer = schedule.side_stages * 1'000'000;
  const Timeline timeline = simulate(program, spread(cost, schedule));
  for (InstructionId id = 0; id < program.size(); ++id) {
    const Op& found = program.instructions[id].op;
    if (found.kind == op.kind && found.stage == op.stage && found.microbatch == op.microbatch)
      return timeline.start[id];
  }
  ADD_FAILURE() << to_string(op) << " does not run";
  return -1;
}

TEST(AfterEdges, MakeAnOpWaitForAnyOtherAndAddNoInstruction) {
  const Schedule plain = two_by_two({});
  const Schedule edged = two_by_two({{forward(0, 1), backward(1, 0)}});
  // 0F0 0..1, 1F0 1..2, 1B0 2..4: without the edge 0F1 starts at 1.
  EXPECT_EQ(start_of(plain, forward(0, 1)), 1'000'000);
  EXPECT_EQ(start_of(edged, forward(0, 1)), 4'000'000);
  EXPECT_EQ(lower_or_throw(edged, Overlap::kAtomic).size(),
            lower_or_throw(plain, Overlap::kAtomic).size());
}

TEST(AfterEdges, MayRepeatWhatTheOrderSays) {
  const Schedule edged =
      two_by_two({{forward(0, 1), forward(0, 0)}, {backward(0, 0), forward(1, 0)}});
  EXPECT_EQ(start_of(edged, backward(0, 1)), start_of(two_by_two({}), backward(0, 1)));
}

// In a pair of any overlap the backward may wait for its forward, which it follows anyway.
TEST(AfterEdges, HoldWithinAPair) {
  Schedule schedule = traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1 | 1F0 1B0 1F1 1B1");
  const Op waiting = backward(0, 0);
  for (const Overlap overlap : kEveryOverlap) {
    schedule.after = {};
    const Nanos plain = start_of(schedule, waiting, overlap);
    schedule.after = {{waiting, forward(0, 1)}};
    EXPECT_EQ(start_of(schedule, waiting, overlap), plain);
  }
  schedule.after = {{forward(0, 1), waiting}};
  EXPECT_EQ(validate(schedule).size(), 1u);
}

// Rank 1 holds a side stage, 2, whose F and B take 1 and 2 ms: 2B0 ends at 7 ms. In a
// pair that starts as one, 0F1 waits for it with 0B0.
TEST(AfterEdges, OfAPairsSecondHalfHoldBackItsFirst) {
  Schedule schedule =
      traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0B1 | 1F0 1B0 2F0 2B0 1F1 1B1 2F1 2B1");
  schedule.rank_of_stage = {0, 1, 1};
  schedule.shape.chunks = schedule.side_stages = 1;
  schedule.after = {{backward(0, 0), backward(2, 0)}};
  EXPECT_EQ(start_of(schedule, forward(0, 1), Overlap::kSerial), 1'000'000);
  EXPECT_EQ(start_of(schedule, backward(0, 0), Overlap::kSerial), 7'000'000);
  EXPECT_EQ(start_of(schedule, forward(0, 1), Overlap::kAtomic), 7'000'000);
  EXPECT_EQ(start_of(schedule, forward(0, 1), Overlap::kFused), 7'000'000);
}

struct Case {
  const char* name;
  AfterEdge edge;
  const char* says;
};

TEST(AfterEdges, ThatCannotHoldAreProblemsWithTheirOps) {
  const Case cases[] = {
      {"unknown waiter", {forward(0, 7), forward(0, 0)}, "'0F7 after 0F0': 0F7 is not in the"},
      {"unknown stage", {forward(5, 0), forward(0, 0)}, "'5F0 after 0F0': 5F0 is not in the"},
      {"unknown awaited", {forward(0, 0), forward(0, -1)}, "is not in the order"},
      {"another kind", {forward(0, 1), input_grad(1, 0)}, "1I0 is not in the order"},
      {"itself", {forward(0, 1), forward(0, 1)}, "cannot wait for itself"},
      {"later op", {forward(0, 0), backward(0, 0)}, "0B0 is later in the order of their rank"},
      {"message", {forward(0, 1), {0, 0, 0, OpKind::kSendForward, {}}}, "is not in the order"},
  };
  for (const Case& test : cases) {
    const Problems problems = validate(two_by_two({test.edge}));
    ASSERT_EQ(problems.size(), 1u) << test.name;
    EXPECT_NE(to_string(problems[0]).find(test.says), std::string::npos) << to_string(problems[0]);
  }
  const AfterEdge edge{forward(0, 1), backward(1, 0)};
  const Problems twice = validate(two_by_two({edge, edge}));
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].rank, 0);
  EXPECT_EQ(twice[0].position, 1);
  EXPECT_NE(to_string(twice[0]).find("given twice"), std::string::npos);
}

TEST(AfterEdges, InACycleAreADeadlockThatNamesThem) {
  const Schedule schedule = two_by_two({{forward(0, 1), forward(1, 1)}});
  const Problems problems = validate(schedule);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(to_string(problems[0]),
            "deadlock: rank 0 at 0F1 waits for 1F1 of rank 1 (after edge); rank 1 at 1F1 waits for "
            "0F1 of rank 0");
  for (const ModeVerdict& verdict : check_modes(schedule))
    EXPECT_TRUE(verdict.deadlock.has_value()) << to_string(verdict.mode, 1);
}

// Messages are placed in an order in which the edges hold, so that no mode deadlocks.
TEST(AfterEdges, AreKeptWhereMessagesArePosted) {
  const Schedule schedule = two_by_two({{forward(0, 1), backward(1, 0)}});
  for (const ModeVerdict& verdict : check_modes(schedule))
    EXPECT_FALSE(verdict.deadlock.has_value()) << to_string(verdict.mode, 1);
  for (const Named<P2pMode>& mode : kP2pModes) {
    LowerOptions options;
    options.mode = mode.choice;
    EXPECT_TRUE(std::holds_alternative<Program>(lower(schedule, options))) << mode.name;
  }
}

// Rank 1 alone needs 6 ms after the 1 ms of 0F0; with the edge, 0F1 follows 1B0 at 4 ms, and after
// it come 1F1, 1B1 and 0B1: 4 + 1 + 1 + 2 + 2.
TEST(AfterEdges, CountInTheLowerBoundOfEveryOrder) {
  const auto bound = [](const Schedule& schedule) {
    const Program program = lower_or_throw(schedule, Overlap::kAtomic);
    return lower_bound(program, simulate(program, spread(UniformCost{}, schedule)));
  };
  EXPECT_EQ(bound(two_by_two({})), 9'000'000);
  EXPECT_EQ(bound(two_by_two({{forward(0, 1), backward(1, 0)}})), 10'000'000);
}

TEST(AfterEdges, ComeBackFromTheNativeFormat) {
  Schedule schedule = two_by_two({{forward(0, 1), backward(1, 0)},
                                  {forward(0, 1), forward(1, 0)},
                                  {backward(0, 1), backward(1, 0)}});
  const std::string text = traces::write_native_schedule(schedule);
  EXPECT_NE(text.find(" \"after\":[\"0F1 after 1B0 1F0\",\n  \"0B1 after 1B0\"]}"),
            std::string::npos)
      << text;
  EXPECT_TRUE(traces::read_native_schedule(text, "f.json") == schedule);
}

TEST(AfterEdges, AreReadStrictly) {
  const auto read = [](const std::string& entry) {
    std::string text = traces::write_native_schedule(two_by_two({{forward(0, 1), backward(1, 0)}}));
    const std::string written = "0F1 after 1B0";
    text.replace(text.find(written), written.size(), entry);
    return error_of([&] { traces::read_native_schedule(text, "f.json"); });
  };
  EXPECT_EQ(read("0F1 after 1B0 "), "");
  EXPECT_NE(read("0F1").find("f.json: /after/0: '0F1' names no edge"), std::string::npos);
  EXPECT_NE(read("0F1 after ").find("awaits nothing"), std::string::npos);
  EXPECT_NE(read("0F1 after 1SEND_F0").find("'1SEND_F0' must be one op of the order"),
            std::string::npos);
  EXPECT_NE(read("(0F1;0B0)OVERLAP_F_B after 1B0").find("must be one op"), std::string::npos);
  EXPECT_NE(read("0F1 after xyz").find("'xyz'"), std::string::npos);
}

TEST(AfterEdges, AreRefusedByFormatsWithoutThem) {
  const Schedule schedule = two_by_two({{forward(0, 1), backward(1, 0)}});
  for (const char* name : {"pytorch-csv", "text", "deepspeed"}) {
    const auto* const format = Registry<traces::ScheduleFormat>::instance().find(name);
    const std::string error = error_of([&] { format->write(schedule); });
    EXPECT_NE(error.find("edges has '0F1 after 1B0'; write it as native"), std::string::npos)
        << name << ": " << error;
  }
  EXPECT_TRUE(fails_with([&] { write_pytorch_csv_comms(schedule); }, "0F1 after 1B0"));
  const ValidSchedule valid = require_valid(schedule);
  const Program program = lower_or_throw(schedule, Overlap::kAtomic);
  const Timing timing{std::vector<Nanos>(program.size(), 1)};
  for (const char* name : {"goal", "goal-one-cpu", "chakra"}) {
    const auto* const format = Registry<traces::ScheduleFormat>::instance().find(name);
    EXPECT_TRUE(fails_with(
        [&] {
          format->write_priced({valid, program, timing});
        },
        "0F1 after 1B0"))
        << name;
  }
}

TEST(SideStages, HaveNoMessagesWithTheChain) {
  Schedule schedule = traces::parse_schedule_text("0F0 2F0 2B0 0B0 | 1F0 1B0 3F0 3B0");
  schedule.rank_of_stage = {0, 1, 0, 1};
  schedule.shape.chunks = 1;
  schedule.side_stages = 2;
  ASSERT_TRUE(validate(schedule).empty()) << to_string(validate(schedule)[0]);
  int messages = 0;
  const Program program = lower_or_throw(schedule, Overlap::kAtomic);
  for (const Instruction& instruction : program.instructions) messages += is_message(instruction);
  EXPECT_EQ(messages, 2);
  // 2F0 needs nothing: it follows 0F0 at once.
  EXPECT_EQ(start_of(schedule, forward(2, 0)), 1'000'000);
  const std::string text = traces::write_native_schedule(schedule);
  EXPECT_TRUE(traces::read_native_schedule(text, "f.json") == schedule);
  schedule.side_stages = 4;
  EXPECT_EQ(problems_of(schedule),
            "of 4 stages, 4 cannot be beside the chain; leave at least one in it");
}

}  // namespace
}  // namespace bubblescope::tests
