// Injected faults: their syntax, and their effect on a prediction.
#include <gtest/gtest.h>

#include <variant>

#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/injection.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

Program lowered(const std::string& name) {
  return std::get<Program>(lower(build_schedule(find_schedule(name), {{2, 1, 2, 1, {}}, {}, {}})));
}

TEST(Injection, IsReadAndWritten) {
  const Injection delay = parse_injection("rank=2,op=1F3,delay=50ms");
  EXPECT_EQ(delay.rank, 2);
  EXPECT_EQ(delay.op, "1F3");
  EXPECT_EQ(delay.delay, 50'000'000);
  EXPECT_EQ(to_string(delay), "rank=2,op=1F3,delay=50ms");
  for (const char* text :
       {"rank=0,die", "rank=1,op=1B0,hang", "rank=3,delay=7ns", "rank=3,slow=2",
        "rank=3,op=3W1,slow=1.25", "rank=0,op=0F1,wrong-size", "rank=0,op=0F1,garbage"})
    EXPECT_EQ(to_string(parse_injection(text)), text);
}

TEST(Injection, WhatIsNoFaultIsRefusedWithTheRemedy) {
  for (const char* text :
       {"", "rank", "rank=x,die", "rank=-1,die", "die", "rank=1", "rank=1,die,hang",
        "rank=1,op=", "rank=1,delay=", "rank=1,slow=", "rank=1,slow=0.5", "rank=1,garbage=1",
        "rank=1,sleep", "rank=99999999999,die"})
    EXPECT_TRUE(
        fails_with([&] { parse_injection(text); }, std::string("'") + text + "' is not a fault: "))
        << text;
  EXPECT_TRUE(
      fails_with([] { parse_injection("rank=1,delay=fast"); }, "'fast' is not a duration; "));
  EXPECT_EQ(error_of([] { parse_injection("op=1F3,die"); }),
            "'op=1F3,die' is not a fault: it does not name a rank; write "
            "rank=R[,op=OP],delay=TIME|slow=FACTOR|die|hang|wrong-size|garbage, such as "
            "rank=2,op=1F3,delay=50ms");
}

TEST(Injection, AnOpThatTheRankDoesNotRunIsNamed) {
  const Program program = lowered("gpipe");
  const auto table = [&](const char* text) {
    return error_of([&] { InjectionTable({parse_injection(text)}, program); });
  };
  EXPECT_EQ(table("rank=0,op=1F0,die"), "`inject` rank=0,op=1F0,die: rank 0 runs no such op");
  EXPECT_EQ(table("rank=2,die"), "`inject` rank=2,die: ranks are 0..1");
  // The last stage's forward sends no message.
  EXPECT_EQ(table("rank=1,op=1F0,garbage"),
            "`inject` rank=1,op=1F0,garbage: rank 1 sends no message that such an op produces");
}

TEST(Injection, ADelayOfOneOpDelaysAPrediction) {
  // gpipe with 2 ranks, 2 micro-batches and unit ops takes 6. If 0F1 is 5 later, so is everything
  // after it.
  const Program program = lowered("gpipe");
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_message(instruction) ? 0 : 1);
  const auto makespan = [&](const Injections& injections) {
    return simulate(program, inject(injections, program, durations)).end.back();
  };
  EXPECT_EQ(makespan({}), 6);
  EXPECT_EQ(makespan({parse_injection("rank=0,op=0F1,delay=5ns")}), 11);
  // All ops of rank 0 are delayed. F0 and F1 end at 6 and 12; 1F1 1B0 1B1 end at 15. Rank 0 is free
  // at 12; 0B0 starts at 14 and ends at 20, 0B1 at 26.
  EXPECT_EQ(makespan({parse_injection("rank=0,delay=5ns")}), 26);
}

TEST(Injection, ASlowRankTakesSoManyTimesAsLong) {
  // All of rank 0's ops take 3: F0 and F1 end at 3 and 6; 1F1 1B0 1B1 end at 7, 8, 9; 0B0 and 0B1
  // at 11 and 14.
  const Program program = lowered("gpipe");
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_message(instruction) ? 0 : 1);
  EXPECT_EQ(
      simulate(program, inject({parse_injection("rank=0,slow=3")}, program, durations)).end.back(),
      14);
}

TEST(Injection, DamageIsAFaultOfTheMessage) {
  const Program program = lowered("gpipe");
  const InjectionTable table({parse_injection("rank=0,op=0F1,wrong-size")}, program);
  for (InstructionId id = 0; id < program.size(); ++id) {
    const bool damaged = to_string(program.instructions[id].op) == "0SEND_F1";
    EXPECT_EQ(table.damage(id), damaged ? Damage::kWrongSize : Damage::kNone);
  }
}

TEST(Injection, APredictionOfADeadRankSaysWhereEveryRankIsBlocked) {
  const Program program = lowered("gpipe");
  const std::vector<Nanos> durations(program.size(), 1);
  EXPECT_EQ(error_of([&] { inject({parse_injection("rank=1,op=1F1,die")}, program, durations); }),
            "with `inject` rank=1,op=1F1,die the step never ends: rank 1 is blocked at 1F1; rank 0 "
            "is blocked at "
            "0B0");
}

}  // namespace
}  // namespace bubblescope::tests
