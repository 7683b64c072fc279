// Send budgets and lookahead on schedules small enough to follow by hand.
#include "sim/ir/send_budget.h"

#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "sim/predict/predict.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// Two stages, GPipe, three micro-batches.
constexpr const char* kGpipe = "0F0 0F1 0F2 0B0 0B1 0B2 | 1F0 1F1 1F2 1B0 1B1 1B2";

ValidSchedule schedule_of(const std::string& text) {
  return require_valid(traces::parse_schedule_text(text, "small"));
}

std::string text_of(const std::vector<RankOrder>& lists) {
  Schedule schedule;
  schedule.posted = lists;
  return traces::write_schedule_text(schedule);
}

/// F = 10, B = 20; messages of `message`, in nanoseconds.
Config costs(Nanos message, std::optional<std::int32_t> budget) {
  Config config;
  UniformCost cost;
  cost.forward = 10;
  cost.backward = 20;
  cost.message = message;
  config.costs = UniformCosts{cost};
  config.lower.send_budget = budget;
  return config;
}

/// The same, with messages of 1000 bytes, activations of 10,000 and static memory.
Config table_of(Nanos message, std::int32_t budget) {
  CostTable table;
  for (int stage = 0; stage < 2; ++stage) {
    StageEntry& entry = table.stages.emplace_back();
    entry.forward = 10;
    entry.input_grad = entry.weight_grad = 10;
    entry.backward = 20;
    entry.activation_bytes = MemoryDelta{10'000, 0, -10'000};
  }
  table.message.latency = message;
  table.message.bytes = 1000;
  table.static_bytes = {7, 9};
  Config config;
  config.costs = table;
  config.lower.send_budget = budget;
  return config;
}

std::int64_t outputs(const Prediction& step, std::size_t rank) {
  return step.report.ranks[rank].peak.outputs->count;
}

TEST(SendBudget, MovesTheOldestWaitInFrontOfTheSendThatIsOneTooMany) {
  const ValidSchedule schedule = schedule_of("0F0 0F1 0B0 0B1 | 1F0 1F1 1B0 1B1");
  EXPECT_EQ(text_of(make_awaited_lists(schedule, ReceivePosting::kAsap, kUnlimitedSends)),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0WAIT_SEND_F0 0RECV_B1 0B1 0WAIT_SEND_F1\n"
            "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1WAIT_SEND_B0 1WAIT_SEND_B1\n");
  EXPECT_EQ(text_of(make_awaited_lists(schedule, ReceivePosting::kAsap, 1)),
            "0F0 0SEND_F0 0F1 0WAIT_SEND_F0 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0WAIT_SEND_F1\n"
            "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1WAIT_SEND_B0 1SEND_B1 1WAIT_SEND_B1\n");
}

TEST(SendBudget, CountsBothDirectionsTogether) {
  const ValidSchedule schedule = schedule_of("0F0 0F1 0B0 0B1 | 1F0 1F1 1B0 1B1 | 2F0 2F1 2B0 2B1");
  // The middle rank's third send is that of a gradient; the oldest of its two sends is 1SEND_F0,
  // for which it has waited after 1B0 already.
  EXPECT_EQ(text_of({make_awaited_lists(schedule, ReceivePosting::kAsap, 2)[1]}),
            "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1WAIT_SEND_F0 1SEND_B0 "
            "1RECV_B1 1B1 1WAIT_SEND_F1 1SEND_B1 1WAIT_SEND_B0 1WAIT_SEND_B1\n");
  EXPECT_EQ(text_of({make_awaited_lists(schedule, ReceivePosting::kAsap, 1)[1]}),
            "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1WAIT_SEND_F0 1SEND_F1 1RECV_B0 1B0 "
            "1WAIT_SEND_F1 1SEND_B0 1RECV_B1 1B1 1WAIT_SEND_B0 1SEND_B1 1WAIT_SEND_B1\n");
}

TEST(SendBudget, KeepsTheWaitsOfAFile) {
  const std::string posted =
      "0F0 0SEND_F0 0WAIT_SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 0WAIT_SEND_F1\n"
      "1RECV_F0 1F0 1RECV_F1 1F1 1B0 1SEND_B0 1B1 1SEND_B1 1WAIT_SEND_B0 1WAIT_SEND_B1\n";
  EXPECT_EQ(text_of(make_awaited_lists(schedule_of(posted), ReceivePosting::kAsap, 2)), posted);
}

// Rank 1 sends first and waits before it receives what rank 0 sends first and waits for.
TEST(SendBudget, RefusesAWaitThatWouldBeADeadlock) {
  const ValidSchedule schedule = schedule_of(
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1 | "
      "1RECV_F1 1F1 1RECV_F0 1F0 1B0 1SEND_B0 1B1 1SEND_B1");
  try {
    make_awaited_lists(schedule, ReceivePosting::kAsap, 1);
    FAIL() << "1RECV_F0 stands behind 1RECV_F1";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::kProblem);
    EXPECT_STREQ(error.what(),
                 "small: rank 0 cannot keep `send_budget` 1 at 0SEND_F1: to wait for one of its "
                 "sends would be a deadlock; raise the budget");
  }
}

// Messages of 25 with F = 10: 0SEND_F0 10..35. 0F1 10..20, then 0SEND_F1 and 0F2 wait until 35:
// 35..60 and 35..45. 0SEND_F2 60..85. Without a budget it leaves at 30.
TEST(SendBudget, BlocksARankUntilItsSendHasArrived) {
  const Prediction limited = predict(schedule_of(kGpipe), costs(25, 1));
  const Prediction unlimited = predict(schedule_of(kGpipe), costs(25, {}));
  const auto end_of = [](const Prediction& step, const std::string& op) {
    for (InstructionId id = 0; id < step.program.size(); ++id)
      if (to_string(step.program.instructions[id]) == op) return step.timeline.end[id];
    return Nanos{-1};
  };
  EXPECT_EQ(end_of(limited, "0F2"), 45);
  EXPECT_EQ(end_of(limited, "0SEND_F2"), 85);
  EXPECT_EQ(end_of(unlimited, "0F2"), 30);
  EXPECT_EQ(end_of(unlimited, "0SEND_F2"), 55);
  const RankReport& rank = limited.report.ranks[0];
  EXPECT_EQ(rank.busy + rank.idle, limited.report.makespan);
  EXPECT_GE(rank.idle_by_cause[static_cast<std::size_t>(IdleCause::kCommunication)], 15);
  EXPECT_EQ(outputs(limited, 0), 2) << "the one that is sent, and the one that waits to be";
  EXPECT_FALSE(unlimited.report.ranks[0].peak.outputs);
}

// Messages of 5 have arrived before the next forward ends, so nothing is blocked. The rank waits
// for the first after the next forward, whose output is there by then.
TEST(SendBudget, CostsNothingWhereMessagesAreShort) {
  const Prediction limited = predict(schedule_of(kGpipe), costs(5, 1));
  EXPECT_EQ(limited.report.makespan, predict(schedule_of(kGpipe), costs(5, {})).report.makespan);
  EXPECT_EQ(outputs(limited, 0), 2);
  EXPECT_EQ(outputs(limited, 1), 2);
}

// Without a limit, activations are held until their backward and gradients until the end: all m.
TEST(SendBudget, WithoutALimitEveryOutputIsHeldForLong) {
  const Prediction step = predict(schedule_of(kGpipe), costs(5, kUnlimitedSends));
  EXPECT_EQ(outputs(step, 0), 3);
  EXPECT_EQ(outputs(step, 1), 3);
  EXPECT_EQ(step.report.makespan, predict(schedule_of(kGpipe), costs(5, {})).report.makespan);
}

// Rank 0 holds three activations of 10,000 and, without a limit, three outputs of 1000 when its
// last forward ends; with a limit of 1 two of them. Rank 1 has sent nothing when it holds most,
// until its first backward ends: its three activations and the first gradient.
TEST(SendBudget, AddsOutputsToTheMemoryOfTheirRank) {
  const Prediction unlimited = predict(schedule_of(kGpipe), table_of(5, kUnlimitedSends));
  EXPECT_EQ(unlimited.report.ranks[0].peak.outputs->bytes, 3000);
  EXPECT_EQ(unlimited.report.ranks[0].peak.bytes, 30'000 + 3000 + 7);
  EXPECT_EQ(unlimited.report.ranks[1].peak.bytes, 30'000 + 1000 + 9);
  const Prediction limited = predict(schedule_of(kGpipe), table_of(5, 1));
  EXPECT_EQ(limited.report.ranks[0].peak.outputs->bytes, 2000);
  EXPECT_EQ(limited.report.ranks[0].peak.bytes, 30'000 + 2000 + 7);
  EXPECT_EQ(limited.report.ranks[0].peak.units, 3) << "outputs are in no unit of --mem";
}

// Slots hold a copy of what is sent, so that no rank is blocked, however long a message takes.
TEST(SendBudget, WithSlotsASendIsDoneAtOnce) {
  Config config = costs(25, 1);
  config.lower.mode = P2pMode::kFifo;
  const Prediction step = predict(schedule_of(kGpipe), config);
  EXPECT_EQ(outputs(step, 0), 2);
  Config without = costs(25, {});
  without.lower.mode = P2pMode::kFifo;
  EXPECT_EQ(step.report.makespan, predict(schedule_of(kGpipe), without).report.makespan);
}

/// Two stages per rank, which alternate.
constexpr const char* kInterleaved =
    "0F0 0F1 2F0 2F1 2B0 2B1 0B0 0B1 | 1F0 1F1 3F0 3F1 3B0 3B1 1B0 1B1";

ValidSchedule ahead(std::optional<UnshardLookahead> lookahead) {
  return shard_stages(schedule_of(kInterleaved), PytorchRelease::kFrom215, lookahead);
}

TEST(UnshardLookahead, CountsStagesFromTheOneThatComputes) {
  EXPECT_EQ(text_of(ahead({{{1}}})->posted).substr(0, 65),
            "0UNSHARD 0F0 0F1 2UNSHARD 2F0 2F1 2B0 2B1 2REDUCE_GRAD 2RESHARD 0");
  EXPECT_EQ(text_of(ahead({{{2}}})->posted), text_of(ahead({})->posted));
}

TEST(UnshardLookahead, AutoIsTwoOnTheFirstRankAndThreeBehind) {
  EXPECT_EQ(spread_lookahead({}, 4), (std::vector<std::int32_t>{2, 3, 3, 3}));
  EXPECT_EQ(spread_lookahead({{1}}, 2), (std::vector<std::int32_t>{1, 1}));
  EXPECT_EQ(error_of([&] {
              spread_lookahead({{1, 2}}, 3);
            }),
            "`unshard_lookahead` has 2 entries for 3 ranks; give one, or one per rank");
  EXPECT_EQ(error_of([&] { spread_lookahead({{4}}, 2); }),
            "`unshard_lookahead` 4 is not in 1..3: a rank has at most 3 stages gathered at once");
  EXPECT_EQ(error_of([&] { spread_lookahead({{0}}, 2); }),
            "`unshard_lookahead` 0 is not in 1..3: a rank has at most 3 stages gathered at once");
}

/// The step with gathers of 4 per stage: F = 5 per chunk.
Prediction gathered(std::int32_t lookahead) {
  Config config = costs(0, {});
  std::get<UniformCosts>(config.costs).cost.update.unshard = 8;
  config.moves.sharding = Sharding{PytorchRelease::kFrom215, false, UnshardLookahead{{lookahead}}};
  return predict(schedule_of(kInterleaved), config);
}

// Rank 0 gathers stage 0 before its first forward, 0..4, and computes 0F0 0F1 4..14. With a
// lookahead of one it gathers stage 2 then, 14..18; with two at once, 4..8. It keeps stage 0
// meanwhile, because it needs it again.
TEST(UnshardLookahead, GathersAheadOfTheOpsThatNeedIt) {
  const Prediction late = gathered(1);
  const Prediction early = gathered(2);
  const auto second_gather = [](const Prediction& step) {
    for (InstructionId id = 0; id < step.program.size(); ++id)
      if (step.program.instructions[id].op == Op{2, 0, 0, OpKind::kUnshard})
        return step.timeline.start[id];
    return Nanos{-1};
  };
  EXPECT_EQ(second_gather(late), 14);
  EXPECT_EQ(second_gather(early), 4);
  EXPECT_GT(late.report.makespan, early.report.makespan);
  EXPECT_EQ(late.report.ranks[0].peak.gathered->count, 2);
  EXPECT_FALSE(late.report.ranks[0].peak.gathered->bytes);
}

}  // namespace
}  // namespace bubblescope::tests
