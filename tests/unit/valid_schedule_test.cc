// The guarantees of ValidSchedule, and that nothing else reaches lower().
#include "sim/ir/valid_schedule.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <variant>

#include "sim/ir/check_messages.h"
#include "sim/ir/lower.h"
#include "sim/ir/recompute.h"
#include "tests/support/random_schedule.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/pytorch_csv.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

static_assert(!std::is_default_constructible_v<ValidSchedule>);
static_assert(!std::is_constructible_v<ValidSchedule, Schedule>);
static_assert(!std::is_convertible_v<Schedule, ValidSchedule>);
static_assert(std::is_convertible_v<const ValidSchedule&, const Schedule&>);

using Lower = decltype(static_cast<std::variant<Program, Deadlock> (*)(
                           const ValidSchedule&, const LowerOptions&)>(&sim::lower));
static_assert(!std::is_invocable_v<Lower, const Schedule&, const LowerOptions&>);

/// The first problem; empty for a legal schedule.
std::string problem_of(Schedule schedule) {
  const auto validated = validate_schedule(std::move(schedule));
  const auto* invalid = std::get_if<InvalidSchedule>(&validated);
  return invalid == nullptr ? "" : to_string(invalid->problems.at(0));
}

constexpr const char* kTwoRanks = "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1";

TEST(ValidSchedule, IsWhatWasGiven) {
  const Schedule given = traces::parse_schedule_text(kTwoRanks);
  const ValidSchedule valid = require_valid(given);
  EXPECT_TRUE(valid.get() == given);
  EXPECT_EQ(valid->name, "text");
}

TEST(ValidSchedule, CollectivesOfStagesThatDoNotExistAreAProblem) {
  EXPECT_EQ(problem_of(traces::read_pytorch_csv("0F0,0B0,9REDUCE_GRAD\n", "f.csv")),
            "9REDUCE_GRAD belongs to a stage that rank 0 does not hold; remove it");
}

TEST(ValidSchedule, OpsOfStagesThatDoNotExistAreAProblem) {
  const char* const text =
      R"({"format":"bubblescope-schedule/1","name":"x","shape":{"ranks":1,"chunks":1,)"
      R"("microbatches":1},"placement":[0],"order":["0F0 60000B0"]})";
  EXPECT_EQ(problem_of(traces::read_native_schedule(text, "f.json")),
            "0B0 is missing, and so are I and W; add B, or I and W");
}

TEST(ValidSchedule, PostedCellsHoldTheOpsOfTheOrder) {
  const Schedule right = traces::parse_schedule_text("0UNSHARD 0F0 0B0 0RESHARD");
  EXPECT_EQ(problem_of(right), "");
  Schedule other = right;
  other.posted[0][1].stage = 7;
  EXPECT_EQ(problem_of(other), "7F0 is posted where the order has 0F0; give both the same ops");
  Schedule more = right;
  more.posted[0].push_back(backward(0, 0));
  EXPECT_EQ(problem_of(more),
            "0B0 is posted where the order has no further op; give both the same ops");
  Schedule fewer = right;
  fewer.posted[0].resize(2);
  EXPECT_EQ(problem_of(fewer), "0B0 is missing from the posted cells; add it");
  Schedule ranks = right;
  ranks.posted.emplace_back();
  EXPECT_EQ(problem_of(ranks),
            "there are posted lists for 2 ranks, the order is of 1; give each rank its list, or "
            "none");
}

TEST(ValidSchedule, ReplicasAreOfStagesThatExistOnRanksThatExist) {
  Schedule schedule = traces::parse_schedule_text(kTwoRanks);
  schedule.replicas_of_stage = {1};
  EXPECT_EQ(problem_of(schedule), "the replicas name 1 stage of 2; name each, or none");
  for (const std::int32_t count : {0, -1, 3, std::numeric_limits<std::int32_t>::max()}) {
    schedule.replicas_of_stage = {1, count};
    EXPECT_EQ(problem_of(schedule).find("stage 1 has "), 0u) << count;
  }
}

TEST(ValidSchedule, AFewOpsCannotClaimMillions) {
  Schedule schedule = traces::parse_schedule_text(kTwoRanks);
  schedule.shape.microbatches = std::numeric_limits<std::int32_t>::max();
  schedule.shape.slices = 32'000;
  EXPECT_EQ(problem_of(schedule).find("the shape requires 2 stages x 2147483647"), 0u);
}

std::int32_t strange_number(std::mt19937& random) {
  constexpr std::array<std::int32_t, 10> kStrange{-1,
                                                  0,
                                                  1,
                                                  2,
                                                  3,
                                                  7,
                                                  60'000,
                                                  1 << 30,
                                                  std::numeric_limits<std::int32_t>::max(),
                                                  std::numeric_limits<std::int32_t>::min()};
  return kStrange[random() % kStrange.size()];
}

void damage_op(std::mt19937& random, RankOrder& ops) {
  if (ops.empty()) return;
  Op& op = ops[random() % ops.size()];
  switch (random() % 5) {
    case 0: op.stage = strange_number(random); break;
    case 1: op.microbatch = strange_number(random); break;
    case 2: op.slice = static_cast<std::int16_t>(strange_number(random)); break;
    case 3: op.kind = static_cast<OpKind>(random() % kOpKinds); break;
    default: op.pairing = static_cast<Pairing>(random() % 3); break;
  }
}

template <class Entries>
void damage_entry(std::mt19937& random, Entries& entries) {
  if (random() % 4 == 0 || entries.empty())
    entries.resize(random() % 4);
  else
    entries[random() % entries.size()] = strange_number(random);
}

void damage(std::mt19937& random, Schedule& schedule) {
  switch (random() % 12) {
    case 0: schedule.shape.microbatches = strange_number(random); break;
    case 1: schedule.shape.slices = strange_number(random); break;
    case 2: schedule.shape.ranks = strange_number(random); break;
    case 3: schedule.pipelines = strange_number(random); break;
    case 4: schedule.fused_forwards = strange_number(random); break;
    case 5: damage_entry(random, schedule.rank_of_stage); break;
    case 6: damage_entry(random, schedule.replicas_of_stage); break;
    case 7: damage_entry(random, schedule.offload_target_of_rank); break;
    case 8: schedule.recompute_of_stage.resize(random() % 4); break;
    case 9: schedule.weights.resize(random() % 4); break;
    case 10:
      if (!schedule.posted.empty())
        damage_op(random, schedule.posted[random() % schedule.posted.size()]);
      break;
    default:
      if (!schedule.order.empty())
        damage_op(random, schedule.order[random() % schedule.order.size()]);
      break;
  }
}

// Whatever is done to a schedule, the checks report it; and whatever they accept, all later code
// accepts: with a result, a deadlock or an Error.
TEST(ValidSchedule, WhatPassesTheChecksCanBeLowered) {
  std::mt19937 random(20'261'122);
  int valid_ones = 0;
  for (std::uint32_t seed = 0; seed < 4000; ++seed) {
    Schedule schedule = random_schedule(
        seed, {.slices = seed % 2 == 0, .messages = seed % 3 == 1, .idle = seed % 5 == 0});
    for (std::uint32_t change = 0; change <= seed % 3; ++change) damage(random, schedule);
    auto validated = validate_schedule(std::move(schedule));
    const auto* valid = std::get_if<ValidSchedule>(&validated);
    if (valid == nullptr) continue;
    ++valid_ones;
    try {
      check_messages(*valid);
      with_recompute(*valid, {Recompute::kFull});
    } catch (const Error&) {  // it says why not
    }
  }
  EXPECT_GT(valid_ones, 100);
}

}  // namespace
}  // namespace bubblescope::tests
