// Schedules as files may state them: chunks, reductions, and ranks that wait for each other.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>

#include "sim/ir/check_messages.h"
#include "sim/ir/validate.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

Schedule parse(const std::string& text) { return traces::parse_schedule_text(text); }

std::string first_problem(const Schedule& schedule) {
  const Problems problems = validate(schedule);
  return problems.empty() ? "" : to_string(problems[0]);
}

std::string first_problem_of(const std::string& text) { return first_problem(parse(text)); }

// Times and memory per rank are divided by the chunks: with 4 instead of 2, a step would take half.
TEST(ValidateChunks, MustBeThoseOfThePlacement) {
  Schedule schedule = parse("0F0 1F0 1B0 0B0");  // both stages on the only rank
  EXPECT_EQ(schedule.shape.chunks, 2);
  EXPECT_EQ(first_problem(schedule), "");
  for (const std::int32_t chunks : {1, 3, 4}) {
    schedule.shape.chunks = chunks;
    EXPECT_EQ(first_problem(schedule), "the shape says " + std::to_string(chunks) +
                                           (chunks == 1 ? " chunk" : " chunks") +
                                           " per rank, but the placement gives a rank 2; "
                                           "correct one of them");
  }
}

// Four stages on two ranks are at least 2 chunks; a rank has three of them.
TEST(ValidateChunks, MayBeAnyNumberOfAnUnevenPlacement) {
  Schedule schedule = parse("0F0 0B0 | 1F0 2F0 3F0 3B0 2B0 1B0");
  for (const std::int32_t chunks : {2, 3}) {
    schedule.shape.chunks = chunks;
    EXPECT_EQ(first_problem(schedule), "");
  }
  schedule.shape.chunks = 4;
  EXPECT_NE(first_problem(schedule).find("gives a rank 2 to 3"), std::string::npos);
}

TEST(ValidateCollectives, ReduceEachStageOnceAfterItsBackwards) {
  EXPECT_EQ(first_problem_of("0F0 0REDUCE_GRAD 0B0"),
            "0REDUCE_GRAD runs before 0B0, whose gradients would be left out; move it after");
  EXPECT_NE(first_problem_of("0F0 0I0 0REDUCE_GRAD 0WAIT_REDUCE_GRAD 0W0").find("before 0W0"),
            std::string::npos);
  EXPECT_EQ(first_problem_of("0F0 0B0 0REDUCE_GRAD 0REDUCE_GRAD"),
            "0REDUCE_GRAD reduces gradients that are reduced already; remove it");
  EXPECT_EQ(first_problem_of("0F0 1F0 1B0 1REDUCE_GRAD 0B0 0REDUCE_GRAD"), "");
}

// Rank 0 sends what rank 1 needs for 1B0 only after 0B0, which needs 1B0.
constexpr const char* kLateSend = "0F0 0RECV_B0 0B0 0SEND_F0 | 1RECV_F0 1F0 1B0 1SEND_B0";

// A rank of a host mode has one list, and is in one place of it.
TEST(CheckMessages, NamesEachRankOnce) {
  const std::string both_sides =
      "2RECV_F0 2RECV_B0 0F0 0SEND_F0 2F0 2B0 2SEND_F0 2SEND_B0 0RECV_B0 0B0 | "
      "1RECV_F0 3RECV_F0 1F0 3F0 1SEND_F0 3B0 3SEND_B0 1RECV_B0 1B0 1SEND_B0";
  for (const std::string& text : {std::string(kLateSend), both_sides}) {
    const MessageVerdict verdict = check_messages(require_valid(parse(text)), {});
    for (const ModeVerdict& mode : verdict.modes) {
      if (!mode.deadlock) continue;
      std::set<std::int32_t> ranks;
      for (const Wait& wait : *mode.deadlock)
        EXPECT_TRUE(ranks.insert(wait.rank).second) << to_string(*mode.deadlock);
    }
  }
}

}  // namespace
}  // namespace bubblescope::tests
