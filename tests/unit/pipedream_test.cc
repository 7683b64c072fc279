// Training without flushes: periods of replicated stages, and the versions of their weights.
#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"

namespace bubblescope {
namespace {

constexpr Nanos kForward = 2;
constexpr Nanos kBackward = 4;

ScheduleRequest request_of(std::int32_t ranks, std::int32_t microbatches) {
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
  ScheduleRequest request = request_of(ranks, 240);
  request.replicas = replicas;
  return report_of("pipedream", request);
}

TEST(PipeDream, ReachesTheIdealPeriodOnReplicatedStages) {
  // A stage of r ranks takes r (F + B) for a micro-batch, and starts r at once: F + B for each.
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
  const BubbleReport report = report_of("pipedream", request_of(4, 40));
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(report.ranks[rank].weights->staleness, 3 - rank);
    EXPECT_EQ(report.ranks[rank].weights->versions, 4 - rank);
  }
}

TEST(PipeDream2BW, HoldsTwoVersionsOneUpdateApart) {
  const BubbleReport report = report_of("pipedream-2bw", request_of(4, 40));
  for (const RankReport& rank : report.ranks) {
    EXPECT_EQ(rank.weights->staleness, 1);
    EXPECT_EQ(rank.weights->versions, 2);
  }
  EXPECT_EQ(report.period, kForward + kBackward);
}

TEST(PipeDream, PaysItsRoundTripOncePerPMicrobatches) {
  // p micro-batches are on their way and their round trip takes p (F + B) + 2 (p-1) c: the period
  // of 1F1B is F + B + 2c (p-1) / p.
  ScheduleRequest request = request_of(4, 400);
  request.cost.message = 2;
  EXPECT_EQ(report_of("pipedream", request).period, kForward + kBackward + 3);
}

TEST(Period, IsUnknownForFlushesAndForTooFewMicrobatches) {
  EXPECT_FALSE(report_of("1f1b", request_of(4, 40)).period);
  EXPECT_FALSE(report_of("pipedream", request_of(4, 2)).period);
}

TEST(ValidateWeights, FindsABackwardThatReadsOtherWeightsThanItsForward) {
  Schedule schedule = build_schedule(find_schedule("pipedream"), request_of(2, 4));
  ASSERT_TRUE(validate(schedule).empty());
  ASSERT_EQ(to_string(schedule.order[0][4]), "0B1");  // 0F0 0F1 0B0 0F2 0B1
  schedule.weights[0][4].read = 1;
  const Problems problems = validate(schedule);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].position, 4);
  EXPECT_NE(problems[0].message.find("its forward read version 0"), std::string::npos);
}

TEST(ValidateWeights, FindsVersionsThatAreNotThere) {
  Schedule schedule = build_schedule(find_schedule("pipedream"), request_of(2, 4));
  schedule.weights[1][0].read = 7;  // 1F0
  schedule.weights[1][1].read = 7;  // 1B0
  schedule.weights[1].back().written = 9;
  EXPECT_EQ(validate(schedule).size(), 3u);
  schedule.weights.pop_back();
  EXPECT_EQ(validate(schedule).size(), 1u);
}

TEST(PipeDream, RefusesReplicasThatDoNotAddUp) {
  ScheduleRequest request = request_of(4, 8);
  request.replicas = {2, 1};
  EXPECT_FALSE(find_schedule("pipedream").refuse(request).empty());
  request.replicas = {4, 0};
  EXPECT_FALSE(find_schedule("pipedream").refuse(request).empty());
}

}  // namespace
}  // namespace bubblescope
