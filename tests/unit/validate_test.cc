// Every problem that validate promises to find, each in the smallest schedule that has it.
#include "sim/ir/validate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/problem_text.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

struct Case {
  const char* name;
  const char* text;
  std::optional<std::int32_t> rank;
  std::optional<std::int32_t> position;
  const char* says;  ///< a part of the message
};

/// The text, with the shape set to two ranks and two micro-batches.
Schedule two_by_two(const char* text) {
  Schedule schedule = traces::parse_schedule_text(text);
  schedule.shape.microbatches = 2;
  schedule.rank_of_stage = {0, 1};
  schedule.shape.chunks = 1;
  return schedule;
}

constexpr const char* kLegal = "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1";

TEST(Validate, AcceptsALegalSchedule) { EXPECT_TRUE(validate(two_by_two(kLegal)).empty()); }

TEST(Validate, FindsEachKindOfProblem) {
  const Case cases[] = {
      {"missing forward", "0F0 0B0 0B1 | 1F0 1B0 1F1 1B1", 0, {}, "0F1 is missing"},
      {"missing backward", "0F0 0F1 0B0 | 1F0 1B0 1F1 1B1", 0, {}, "0B1 is missing"},
      {"missing weight gradient", "0F0 0F1 0B0 0B1 | 1F0 1I0 1F1 1B1", 1, {}, "1W0 is missing"},
      {"duplicate", "0F0 0F1 0B0 0B1 0B0 | 1F0 1B0 1F1 1B1", 0, 4, "runs twice"},
      {"micro-batch out of range", "0F0 0F1 0B0 0B1 0F7 | 1F0 1B0 1F1 1B1", 0, 4, "micro-batch 7"},
      {"stage out of range", "0F0 0F1 0B0 0B1 2F0 | 1F0 1B0 1F1 1B1", 0, 4, "stage 2"},
      {"weight gradient first", "0F0 0F1 0W0 0I0 0B1 | 1F0 1B0 1F1 1B1", 0, 2, "before its 0I0"},
      {"backward first", "0F0 0F1 0B0 0B1 | 1B0 1F0 1F1 1B1", 1, 0, "before its forward 1F0"},
      {"full and split backward", "0F0 0F1 0B0 0W0 0B1 | 1F0 1B0 1F1 1B1", 0, 3,
       "repeats the work of 0B0"},
      {"B and I of one", "0F0 0F1 0B0 0I0 0B1 | 1F0 1B0 1F1 1B1", 0, 3, "B as well as I"},
      // PyTorch's own validator counts I=W=1, B=1 for micro-batch 0 and accepts none for 1.
      {"counts that cancel", "0F0 0F1 0B0 0I0 0W0 | 1F0 1B0 1F1 1B1", 0, {}, "0B1 is missing"},
      {"deadlock across ranks", "0F0 0B0 0F1 0B1 | 1F1 1B1 1F0 1B0", 0, 1, "deadlock"},
      {"recompute too late", "0F0 0F1 0B0 0R0 0B1 | 1F0 1B0 1F1 1B1", 0, 3, "needs it"},
  };
  for (const Case& test : cases) {
    const Problems problems = validate(two_by_two(test.text));
    const auto found = std::find_if(problems.begin(), problems.end(), [&](const Problem& problem) {
      return problem.rank == test.rank && problem.position == test.position &&
             to_string(problem).find(test.says) != std::string::npos;
    });
    EXPECT_NE(found, problems.end())
        << test.name << ": " << (problems.empty() ? "no problem" : to_string(problems[0]));
  }
}

// Recordings have the same faults, but other remedies.
TEST(Validate, TellsFaultsFromRemedies) {
  const Problems twice = validate(two_by_two("0F0 0F1 0B0 0B1 0B0 | 1F0 1B0 1F1 1B1"));
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].what, "0B0 runs twice");
  EXPECT_EQ(twice[0].remedy, "the first is at position 2, remove one");
  EXPECT_EQ(to_string(twice[0]), "0B0 runs twice; the first is at position 2, remove one");
  for (const char* const text :
       {"0F0 0F1 0W0 0I0 | 1B0 1F0 1F1 1B1", "0F1 0B0 0W0 0B1 2F0 | 1F0 1B0 1F1 1B1",
        "0F0 0F1 0B0 0I0 0W0 | 1F0 1R0 1B0 1F1 1B1", "0F0 0F1 0B0 0R0 0B1 | 1F0 1B0 1F1 1B1",
        "0F0 0EVICT0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1"})
    for (const Problem& problem : validate(two_by_two(text)))
      EXPECT_EQ(problem.what.find(';'), std::string::npos) << problem.what;
}

TEST(Validate, ReturnsEveryProblemInRankOrder) {
  const Problems problems = validate(two_by_two("0F0 0B0 0B0 | 1B0 1F0 1F1 1B1"));
  ASSERT_EQ(problems.size(), 4u);  // 0F1 and 0B1 missing, 0B0 twice, 1B0 before 1F0
  EXPECT_EQ(problems[0].rank, 0);
  EXPECT_EQ(problems[3].rank, 1);
}

TEST(Validate, FindsStagesWithoutRank) {
  Schedule schedule = two_by_two(kLegal);
  schedule.rank_of_stage = {0, 2};
  ASSERT_FALSE(validate(schedule).empty());
  EXPECT_NE(to_string(validate(schedule)[0]).find("stage 1 has no rank"), std::string::npos);
}

TEST(Validate, FindsOpsOnTheWrongRank) {
  Schedule schedule = two_by_two(kLegal);
  std::swap(schedule.rank_of_stage[0], schedule.rank_of_stage[1]);
  const Problems problems = validate(schedule);
  const auto wrong = std::count_if(problems.begin(), problems.end(), [](const Problem& problem) {
    return to_string(problem).find("move it there") != std::string::npos;
  });
  EXPECT_EQ(wrong, 8);  // every op of both ranks
}

TEST(Validate, FindsHalvesOfPairs) {
  Schedule schedule = two_by_two(kLegal);
  RankOrder& ops = schedule.order[0];  // 0F0 0F1 0B0 0B1
  const std::string without =
      " is half of an overlapped pair without the other; a pair is a forward and, right after it, "
      "a B or I";
  ops[1].pairing = Pairing::kFirst;
  EXPECT_EQ(problems_of(schedule), "0F1" + without);
  ops[2].pairing = Pairing::kSecond;
  EXPECT_TRUE(validate(schedule).empty());
  ops[1].pairing = Pairing::kAlone;
  EXPECT_EQ(problems_of(schedule), "0B0" + without);
}

// The op between the halves is in its place.
TEST(Validate, BlamesTheHalvesOfAPairThatAnotherOpParts) {
  Schedule schedule = two_by_two(kLegal);
  RankOrder& ops = schedule.order[0];
  const std::string without =
      " is half of an overlapped pair without the other; a pair is a forward and, right after it, "
      "a B or I";
  ops[0].pairing = Pairing::kFirst;
  ops[2].pairing = Pairing::kSecond;
  EXPECT_EQ(problems_of(schedule), "0F0" + without + "\n0B0" + without);
  EXPECT_EQ(validate(schedule)[0].position, 0);
  EXPECT_EQ(validate(schedule)[1].position, 2);
  ops[1].pairing = Pairing::kFirst;  // which has its other half after it
  EXPECT_EQ(problems_of(schedule), "0F0" + without);
  ops[3].pairing = Pairing::kFirst;
  EXPECT_EQ(problems_of(schedule), "0F0" + without + "\n0B1" + without);
}

// Lowering and measured steps rely on it: the first op of a pair is a forward.
TEST(Validate, RefusesPairsThatBeginWithABackward) {
  Schedule schedule = two_by_two(kLegal);
  const auto of = [&](std::int32_t rank) {
    RankOrder& order = schedule.order[static_cast<std::size_t>(rank)];
    return std::find_if(order.begin(), order.end(), [](const Op& op) {
      return op.kind == OpKind::kBackward && op.microbatch == 0;
    });
  };
  const auto backward_first = of(1);
  ASSERT_EQ(std::next(backward_first)->kind, OpKind::kForward);
  backward_first->pairing = Pairing::kFirst;
  std::next(backward_first)->pairing = Pairing::kSecond;
  const Problems problems = validate(schedule);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(to_string(problems[0]).find("a pair is a forward and then a B or I"),
            std::string::npos);
}

TEST(Validate, RefusesBackwardsInForwardOnly) {
  Schedule schedule = two_by_two("0F0 0F1 | 1F0 1F1 1B1");
  schedule.forward_only = true;
  ASSERT_EQ(validate(schedule).size(), 1u);
  EXPECT_EQ(validate(schedule)[0].position, 2);
}

TEST(Validate, KeepsMicrobatchesInTheirPipeline) {
  Schedule schedule = two_by_two("0F0 3F1 3B1 0B0 | 1F0 2F1 1B0 2B1");
  schedule.rank_of_stage = {0, 1, 1, 0};
  schedule.pipelines = 2;
  EXPECT_TRUE(validate(schedule).empty()) << to_string(validate(schedule)[0]);
  std::swap(schedule.order[0][0].microbatch, schedule.order[0][1].microbatch);
  EXPECT_EQ(problems_of(schedule),
            "0F0 is missing; add it to this rank\n"
            "3F1 is missing; add it to this rank\n"
            "0F1: micro-batch 1 runs through the other pipeline's stages\n"
            "3F0: micro-batch 0 runs through the other pipeline's stages");
}

struct MessageCase {
  const char* name;
  const char* posted;
  const char* says;
};

TEST(ValidateMessages, FindsEachKindOfProblem) {
  const MessageCase cases[] = {
      {"sound",
       "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       ""},
      {"send missing",
       "0F0 0SEND_F0 0F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "0SEND_F1 is missing"},
      {"receive missing",
       "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "1RECV_F0 is missing"},
      {"sent before it is made",
       "0SEND_F0 0F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "before its data is produced"},
      {"received after its use",
       "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1F0 1RECV_F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "which needs it"},
      {"another order",
       "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F1 1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1",
       "order both the same"},
      {"twice",
       "0F0 0SEND_F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "posted twice"},
      {"no neighbour",
       "0F0 0SEND_F0 0SEND_B0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1",
       "no adjacent stage"},
      {"on the wrong rank",
       "0F0 0SEND_F0 0F1 0SEND_F1 1RECV_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
       "1RECV_F0 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1",
       "belongs to rank 1"},
  };
  for (const MessageCase& test : cases) {
    const Problems problems = validate(two_by_two(test.posted));
    const bool sound = std::string(test.says).empty();
    EXPECT_EQ(problems.empty(), sound) << test.name;
    const bool said = std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
      return to_string(problem).find(test.says) != std::string::npos;
    });
    EXPECT_TRUE(sound || said) << test.name << ": "
                               << (problems.empty() ? "" : to_string(problems[0]));
  }
}

TEST(Validate, RequiresFusedForwardsToBeAdjacent) {
  Schedule schedule = traces::parse_schedule_text("0F0 0F1 0B0 0B1");
  schedule.fused_forwards = 2;
  EXPECT_TRUE(validate(schedule).empty());
  schedule = traces::parse_schedule_text("0F0 0B0 0F1 0B1");
  schedule.fused_forwards = 2;
  ASSERT_EQ(validate(schedule).size(), 1u);
  EXPECT_EQ(validate(schedule)[0].position, 2);
  schedule.fused_forwards = 3;  // of two
  EXPECT_EQ(problems_of(schedule),
            "forwards are fused 3 at a time, which does not divide their number; correct one");
}

}  // namespace
}  // namespace bubblescope::tests
