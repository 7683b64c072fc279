// Message modes on schedules small enough to follow by hand.
#include <gtest/gtest.h>

#include "sim/analysis/analyze.h"
#include "sim/analysis/suggest_receives.h"
#include "sim/engine/simulate.h"
#include "sim/ir/check_messages.h"
#include "sim/ir/defer_receives.h"
#include "sim/ir/error.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// PyTorch's Interleaved1F1B for p = 2, v = 1, m = 2: the smallest that its deferral deadlocks.
constexpr const char* kOneFOneB = "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1";

/// Two forwards, received in another order than they are sent.
constexpr const char* kCrossed = "0F0 0SEND_F0 0F1 0SEND_F1 | 1RECV_F1 1RECV_F0 1F0 1F1";

/// F = 1, B = 2, in nanoseconds.
CostModel unit_costs(const Schedule& schedule, Nanos message = 0) {
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 1;
  cost.message = message;
  cost.per = UniformCost::Per::kChunk;
  return spread(cost, schedule);
}

BubbleReport report_of(const std::string& text, const LowerOptions& options, Nanos message = 0) {
  const Schedule schedule = traces::parse_schedule_text(text);
  const Program program = std::get<Program>(lower(schedule, options));
  return analyze(schedule, program, simulate(program, unit_costs(schedule, message)));
}

std::string deadlock_of(const std::string& text, const LowerOptions& options) {
  const auto lowered = lower(traces::parse_schedule_text(text), options);
  const auto* deadlock = std::get_if<Deadlock>(&lowered);
  return deadlock ? to_string(*deadlock) : "";
}

std::string text_of(const std::vector<RankOrder>& lists) {
  Schedule schedule;
  schedule.posted = lists;
  return traces::write_schedule_text(schedule);
}

TEST(P2pMode, TableIsInTheOrderOfTheEnum) {
  for (std::size_t at = 0; at < kP2pModes.size(); ++at)
    EXPECT_EQ(static_cast<std::size_t>(kP2pModes[at].choice), at);
  EXPECT_EQ(to_string(P2pMode::kEager, 2), "eager:2");
  EXPECT_EQ(to_string(P2pMode::kHostSend, 2), "host-send");
}

TEST(DeferReceives, MovesReceivesToTheirConsumers) {
  const Schedule schedule = traces::parse_schedule_text(kOneFOneB);
  EXPECT_EQ(text_of(make_posted_lists(schedule, ReceivePosting::kDeferred)),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n");
}

TEST(DeferReceives, ReleasesReceivesBeforeASendToAHigherRank) {
  // 0RECV_B0 is deferred when 0SEND_F1 comes, and both involve rank 1.
  const Schedule schedule = traces::parse_schedule_text(
      "0F0 0SEND_F0 0RECV_B0 0F1 0SEND_F1 0B0 0RECV_B1 0B1 |"
      "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1");
  EXPECT_EQ(text_of(defer_receives(schedule, schedule.posted)),
            "0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0RECV_B1 0B1\n"
            "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1\n");
}

TEST(Messages, SmallestDeferredDeadlockNamesRanksAndOperations) {
  const std::string cycle =
      "rank 0 at 0SEND_F1 waits for 1RECV_F1 of rank 1; "
      "rank 1 at 1SEND_B0 waits for 0RECV_B0 of rank 0";
  for (const P2pMode mode : {P2pMode::kRendezvous, P2pMode::kHostRendezvous, P2pMode::kHostSend}) {
    EXPECT_EQ(deadlock_of(kOneFOneB, {.mode = mode, .posting = ReceivePosting::kDeferred}), cycle);
    EXPECT_EQ(deadlock_of(kOneFOneB, {.mode = mode, .posting = ReceivePosting::kAsap}), "");
  }
}

TEST(Messages, OneSlotOrOneGroupRemovesTheSmallestDeadlock) {
  LowerOptions options{.posting = ReceivePosting::kDeferred};
  EXPECT_EQ(eager_slots_needed(traces::parse_schedule_text(kOneFOneB), options), 1);
  options.mode = P2pMode::kBatched;
  EXPECT_EQ(deadlock_of(kOneFOneB, options), "");
}

TEST(Messages, ADirectDeliveryNeedsNoSlot) {
  // Without a slot 0SEND_F0 waits for 1RECV_F0, which comes after 1RECV_F1. With one slot F0 takes
  // it, and F1 is sent directly to its receive at the head.
  const Schedule crossed = traces::parse_schedule_text(kCrossed);
  EXPECT_EQ(eager_slots_needed(crossed), 1);
  EXPECT_EQ(deadlock_of(kCrossed, {.mode = P2pMode::kRendezvous}),
            "rank 0 at 0SEND_F0 waits for 1RECV_F0 of rank 1; "
            "rank 1 at 1RECV_F1 waits for 0SEND_F1 of rank 0");
}

TEST(Messages, NoNumberOfSlotsHelpsAReceiveBeforeItsSendersInput) {
  // Rank 1 receives F1 before it sends the B0 that rank 0 waits for before it produces F1.
  const Schedule schedule = traces::parse_schedule_text(
      "0F0 0SEND_F0 0RECV_B0 0B0 0F1 0SEND_F1 0RECV_B1 0B1 |"
      "1RECV_F0 1F0 1B0 1RECV_F1 1SEND_B0 1F1 1B1 1SEND_B1");
  EXPECT_EQ(eager_slots_needed(schedule), std::nullopt);
}

TEST(Messages, AReceiveAtTheHeadBlocksTheOnesBehindIt) {
  // F1 arrives at 2, F0 at 1; the queue delivers F1 first, so 1F0 starts at 2 and not at 1.
  EXPECT_EQ(report_of(kCrossed, {.mode = P2pMode::kDataflow}).makespan, 3);
  EXPECT_EQ(report_of(kCrossed, {.mode = P2pMode::kFifo}).makespan, 4);
}

TEST(Messages, LatencyBlocksTheSenderOnlyInARendezvousOfTheHost) {
  // Messages of 3 ns, F = 1, both receives posted first. F0 is in transit from 1 to 4. If that does
  // not block rank 0, F1 follows from 2 to 5 and rank 1 ends at 6. If it does, rank 0 runs F1 from
  // 4 to 5 and sends it until 8, and only then rank 1, which waits for both, runs both until 10.
  constexpr const char* kEarly = "0F0 0SEND_F0 0F1 0SEND_F1 | 1RECV_F0 1RECV_F1 1F0 1F1";
  EXPECT_EQ(report_of(kEarly, {.mode = P2pMode::kHostSend}, 3).makespan, 6);
  EXPECT_EQ(report_of(kEarly, {.mode = P2pMode::kFifo}, 3).makespan, 6);
  EXPECT_EQ(report_of(kEarly, {.mode = P2pMode::kHostRendezvous}, 3).makespan, 10);
}

TEST(Messages, BlockedRanksAreIdleAndNotBusy) {
  const BubbleReport plain = report_of(kOneFOneB, {}, 1);
  for (const Named<P2pMode>& mode : kP2pModes) {
    const BubbleReport report = report_of(kOneFOneB, {.mode = mode.choice}, 1);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(report.ranks[rank].busy, plain.ranks[rank].busy);
      EXPECT_EQ(report.ranks[rank].sends, 2);
      EXPECT_EQ(report.ranks[rank].busy + report.ranks[rank].idle, report.makespan);
    }
  }
}

TEST(Messages, WaitingForAMessageInTransitIsCommunication) {
  // One micro-batch, messages of 1 ns: rank 0 waits from 1 to 6, of which the gradient is in
  // transit for 1.
  for (const Named<P2pMode>& mode : kP2pModes) {
    const BubbleReport report = report_of("0F0 0B0 | 1F0 1B0", {.mode = mode.choice}, 1);
    const auto& causes = report.ranks[0].idle_by_cause;
    EXPECT_EQ(causes[static_cast<std::size_t>(IdleCause::kCommunication)], 1) << mode.name;
    EXPECT_EQ(causes[static_cast<std::size_t>(IdleCause::kDependency)], 4) << mode.name;
  }
}

TEST(Messages, AMessagePostedAtOneEndIsRefused) {
  const Schedule schedule = traces::parse_schedule_text("0F0 0SEND_F0 | 1F0");
  EXPECT_EQ(error_of([&] { lower(schedule, {.mode = P2pMode::kFifo}); }),
            "text is not legal: 1 problem, the first: 1RECV_F0 is missing; add it before 1F0");
}

TEST(SuggestReceives, RemovesTheSmallestDeadlock) {
  const Schedule schedule = traces::parse_schedule_text(kOneFOneB);
  for (const P2pMode mode : {P2pMode::kRendezvous, P2pMode::kHostRendezvous, P2pMode::kHostSend}) {
    const LowerOptions options{.mode = mode, .posting = ReceivePosting::kDeferred};
    const auto suggestion = suggest_receives(schedule, options, unit_costs(schedule));
    ASSERT_TRUE(suggestion);
    EXPECT_EQ(to_string(*suggestion),
              "rank 1: post 1RECV_F1 before 1SEND_B0\n"
              "removes the deadlock; then the step takes 9 ns, the same as dataflow\n");
  }
}

TEST(SuggestReceives, RemovesAHeadOfLineWait) {
  const Schedule schedule = traces::parse_schedule_text(kCrossed);
  const auto suggestion =
      suggest_receives(schedule, {.mode = P2pMode::kFifo}, unit_costs(schedule));
  ASSERT_TRUE(suggestion);
  EXPECT_EQ(suggestion->makespan_as_posted, 4);
  EXPECT_EQ(suggestion->makespan, 3);
  EXPECT_EQ(text_of(suggestion->posted), "0F0 0SEND_F0 0F1 0SEND_F1\n1RECV_F0 1F0 1RECV_F1 1F1\n");
}

TEST(SuggestReceives, IsEmptyIfNothingIsGained) {
  const Schedule schedule = traces::parse_schedule_text(kOneFOneB);
  EXPECT_FALSE(suggest_receives(schedule, {.mode = P2pMode::kFifo}, unit_costs(schedule)));
}

}  // namespace
}  // namespace bubblescope::tests
