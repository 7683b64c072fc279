// Training without flushes: periods of replicated stages, and versions of their weights.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kForward = 2;
constexpr Nanos kBackward = 4;

ScheduleRequest make_request(std::int32_t ranks, std::int32_t microbatches) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.microbatches = microbatches;
  request.cost.forward = kForward;
  request.cost.backward = kBackward;
  return request;
}

BubbleReport report_of(const Schedule& schedule, const UniformCost& cost) {
  const Program program = std::get<Program>(lower(schedule));
  return analyze(schedule, program, simulate(program, spread(cost, schedule)));
}

BubbleReport report_of(const std::string& name, const ScheduleRequest& request) {
  return report_of(build_schedule(find_schedule(name), request), request.cost);
}

BubbleReport report_of_replicas(const std::vector<std::int32_t>& replicas) {
  std::int32_t ranks = 0;
  for (const std::int32_t count : replicas) ranks += count;
  ScheduleRequest request = make_request(ranks, 240);
  request.replicas = replicas;
  return report_of("pipedream", request);
}

TEST(PipeDream, ReachesTheIdealPeriodOnReplicatedStages) {
  // A stage of r ranks takes r (F + B) per micro-batch and runs r at once: F + B for each.
  for (const std::vector<std::int32_t>& replicas :
       {std::vector{2, 1}, {3, 1}, {2, 1, 1}, {4, 2, 1}, {1, 1, 1, 1}})
    EXPECT_EQ(report_of_replicas(replicas).period, kForward + kBackward)
        << testing::PrintToString(replicas);
}

TEST(PipeDream, StallsWhereItsWarmupRuleStarvesAWiderStage) {
  // Stages of 1, 2 and 1 ranks: the first warms up with w = 3 forwards, which is too few to keep
  // the two replicas busy; half of the ideal rate is lost.
  EXPECT_EQ(report_of_replicas({1, 2, 1}).period, (kForward + kBackward) * 3 / 2);
}

TEST(PipeDream, WarmsUpAsItsRuntimeDoes) {
  // w = floor((R - 1) / r) with R ranks left: (4-1)/2, then (2-1)/1, then 0.
  const BubbleReport report = report_of_replicas({2, 1, 1});
  std::vector<std::int32_t> warmups;
  for (const RankReport& rank : report.ranks) warmups.push_back(rank.weights->warmup);
  EXPECT_EQ(warmups, (std::vector{1, 1, 1, 0}));
}

TEST(PipeDream, IsStalerTheEarlierTheStage) {
  const BubbleReport report = report_of("pipedream", make_request(4, 40));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(report.ranks[rank].weights->staleness, 3 - rank);
    EXPECT_EQ(report.ranks[rank].weights->versions, 4 - rank);
  }
}

TEST(PipeDream, FeedsAWiderStageWithMoreInFlight) {
  // For (1, 2, 1), NOAM is 4. With one more in flight nothing stalls: the two replicas of the
  // second stage never wait for the first.
  ScheduleRequest request = make_request(4, 240);
  request.replicas = {1, 2, 1};
  request.in_flight = 5;
  EXPECT_EQ(report_of("pipedream", request).period, kForward + kBackward);
}

TEST(PipeDream, RunsAsFastAsTheMicrobatchesInFlightAllow) {
  // A round trip takes p (F + B), and the first stage runs a backward for every forward: a
  // micro-batch returns every ceil(p / K) (F + B). Fewer in flight need fewer versions.
  for (std::int32_t in_flight = 1; in_flight <= 4; ++in_flight) {
    ScheduleRequest request = make_request(4, 240);
    request.in_flight = in_flight;
    const BubbleReport report = report_of("pipedream", request);
    EXPECT_EQ(report.period, (4 + in_flight - 1) / in_flight * (kForward + kBackward));
    EXPECT_EQ(report.ranks[0].weights->versions, in_flight);
  }
}

TEST(PipeDream, CountsTheBytesOfItsWeightVersions) {
  const Schedule schedule = build_schedule(find_schedule("pipedream"), make_request(4, 40));
  const Program program = std::get<Program>(lower(schedule));
  MemoryModel memory;
  memory.weight_bytes = {100, 200, 300, 400};
  const BubbleReport report =
      analyze(schedule, program, simulate(program, spread({}, schedule)), memory);
  std::vector<Bytes> bytes;
  for (const RankReport& rank : report.ranks) bytes.push_back(*rank.weights->bytes);
  EXPECT_EQ(bytes, (std::vector<Bytes>{4 * 100, 3 * 200, 2 * 300, 1 * 400}));
}

TEST(PipeDreamVertical, UsesOneVersionForAMicrobatchOnAllStages) {
  constexpr std::int32_t kDelay = 3;  // p - 1
  const Schedule schedule = build_schedule(find_schedule("vertical-sync"), make_request(4, 40));
  EXPECT_TRUE(validate(schedule).empty());
  for (std::size_t rank = 0; rank < 4; ++rank)
    for (std::size_t at = 0; at < schedule.order[rank].size(); ++at)
      EXPECT_EQ(schedule.weights[rank][at].read,
                std::max(0, schedule.order[rank][at].microbatch - kDelay));
  const BubbleReport report = report_of(schedule, make_request(4, 40).cost);
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.weights->staleness, kDelay);
    EXPECT_EQ(rank.weights->versions, kDelay + 1);
  }
}

TEST(PipeDream2BW, ReplicatesTheWholePipeline) {
  // Three stages of two ranks: two pipelines, each of which takes 2 (F + B) per micro-batch.
  ScheduleRequest request = make_request(6, 48);
  request.replicas = {2, 2, 2};
  const BubbleReport report = report_of("pipedream-2bw", request);
  EXPECT_EQ(report.period, kForward + kBackward);
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.weights->versions, 2);
    EXPECT_EQ(rank.weights->staleness, 1);
  }
  request.replicas = {3, 2, 1};
  EXPECT_EQ(find_schedule("pipedream-2bw").refuse(request),
            std::vector<std::string>{
                "the whole pipeline is replicated; give every stage the same `replicas`"});
}

TEST(PipeDream2BW, HoldsTwoVersionsOneUpdateApart) {
  const BubbleReport report = report_of("pipedream-2bw", make_request(4, 40));
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.weights->staleness, 1);
    EXPECT_EQ(rank.weights->versions, 2);
  }
  EXPECT_EQ(report.period, kForward + kBackward);
}

TEST(PipeDream, PaysItsRoundTripOncePerPMicrobatches) {
  // p micro-batches are in flight and their round trip takes p (F + B) + 2 (p-1) c: the period of
  // 1F1B is F + B + 2c (p-1) / p.
  ScheduleRequest request = make_request(4, 400);
  request.cost.message = 2;
  EXPECT_EQ(report_of("pipedream", request).period, kForward + kBackward + 3);
}

TEST(Period, IsUnknownForFlushesAndForTooFewMicrobatches) {
  EXPECT_FALSE(report_of("1f1b", make_request(4, 40)).period);
  EXPECT_FALSE(report_of("pipedream", make_request(4, 2)).period);
}

TEST(ValidateWeights, FindsABackwardThatReadsOtherWeightsThanItsForward) {
  Schedule schedule = build_schedule(find_schedule("pipedream"), make_request(2, 4));
  ASSERT_TRUE(validate(schedule).empty());
  ASSERT_EQ(to_string(schedule.order[0][4]), "0B1");  // 0F0 0F1 0B0 0F2 0B1
  schedule.weights[0][4].read = 1;
  const Problems problems = validate(schedule);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].position, 4);
  EXPECT_NE(to_string(problems[0]).find("its forward read version 0"), std::string::npos);
}

TEST(ValidateWeights, FindsVersionsThatAreNotThere) {
  Schedule schedule = build_schedule(find_schedule("pipedream"), make_request(2, 4));
  schedule.weights[1][0].read = 7;  // 1F0
  schedule.weights[1][1].read = 7;  // 1B0
  schedule.weights[1].back().written = 9;
  EXPECT_EQ(validate(schedule).size(), 3u);
  schedule.weights.pop_back();
  EXPECT_EQ(validate(schedule).size(), 1u);
}

TEST(ValidateWeights, DistinguishesSlicesOfAMicrobatch) {
  // The slices of micro-batch 0 enter before and after the update of micro-batch 1.
  Schedule schedule = traces::parse_schedule_text("0F1 0F1.1 0F0 0B1.1 0B1 0F0.1 0B0.1 0B0");
  schedule.weights = {{{0, {}}, {0, {}}, {0, {}}, {0, {}}, {0, 1}, {1, {}}, {1, {}}, {0, 2}}};
  EXPECT_TRUE(validate(schedule).empty());
  schedule.weights[0][7].read = 1;
  EXPECT_EQ(validate(schedule).size(), 1u);
}

TEST(PipeDream, RefusesReplicasThatDoNotAddUp) {
  ScheduleRequest request = make_request(4, 8);
  request.replicas = {2, 1};
  EXPECT_EQ(find_schedule("pipedream").refuse(request),
            std::vector<std::string>{"`replicas` uses 3 ranks; `pp` must be that, not 4"});
  request.replicas = {4, 0};
  EXPECT_EQ(find_schedule("pipedream").refuse(request),
            std::vector<std::string>{"`replicas`: every stage needs at least 1 rank"});
}

}  // namespace
}  // namespace bubblescope::tests
