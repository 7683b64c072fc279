// A rank is lost, and its micro-batches are at its peers.
#include "sim/predict/lose_rank.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/ir/lower.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/rank_loss.h"
#include "tests/support/built_schedule.h"
#include "tests/support/error_text.h"
#include "traces/reports/loss_text.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

std::vector<std::string> orders_of(const Schedule& schedule) {
  std::vector<std::string> texts;
  for (const RankOrder& order : schedule.order) {
    std::string& text = texts.emplace_back();
    for (const Op& op : order) text += (text.empty() ? "" : " ") + to_string(op);
  }
  return texts;
}

/// f = 3, b = 6 and nothing between ranks, in milliseconds.
Config costs() {
  UniformCost cost;
  cost.forward = 3'000'000;
  cost.input_grad = 2'000'000;
  cost.weight_grad = 4'000'000;
  Config config;
  config.costs = UniformCosts{cost};
  return config;
}

TEST(LoseRank, GivesThePeerTheOpsOfTheLostRankInTheirTime) {
  const ValidSchedule job = lose_rank(build("1f1b", 2, 2), {.replicas = 2, .rank = 1});
  EXPECT_EQ(orders_of(job), (std::vector<std::string>{
                                "0F0 0F2 0B0 0B2",
                                "0F1 0F3 0B1 0B3",
                                "1F0 1F1 1B0 1B1 1F2 1F3 1B2 1B3",
                            }));
}

TEST(LoseRank, PeersTakeTurnsOnTheMicrobatchesOfTheLostRankAlone) {
  const ValidSchedule job = lose_rank(build("1f1b", 2, 4), {.replicas = 3, .rank = 0});
  // Ranks 0 and 1 are the peers; micro-batches 2, 5, 8 and 11 belong to the damaged replica.
  for (std::int32_t microbatch = 0; microbatch < 12; ++microbatch) {
    const bool moves = microbatch % 3 == 2;
    EXPECT_EQ(job->rank_of(0, microbatch), moves ? microbatch / 3 % 2 : microbatch % 3);
    EXPECT_EQ(job->rank_of(1, microbatch), 2 + microbatch % 3);
  }
}

TEST(LoseRank, NoOrderBlocks) {
  int accepted = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    ScheduleRequest request;
    request.shape = {4, def.implied_chunks.value_or(def.default_chunks), 8, 1, {}};
    if (def.refuse && !def.refuse(request).empty()) continue;
    const ValidSchedule pipeline = build_schedule(def, request);
    try {
      expect_rank_may_be_lost(pipeline, {3, 0});
    } catch (const Error&) {
      continue;
    }
    ++accepted;
    for (std::int32_t rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE(def.name + ", rank " + std::to_string(rank));
      EXPECT_TRUE(validate(lose_rank(pipeline, {3, rank})).empty());
    }
  }
  EXPECT_GT(accepted, 10);
}

/// Odd shapes too: two pipelines may then have different numbers of micro-batches.
TEST(LoseRank, EveryScheduleIsRefusedOrLegal) {
  int accepted = 0;
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all())
    for (const std::int32_t ranks : {1, 2, 3})
      for (const std::int32_t microbatches : {1, 2, 3, 5}) {
        ScheduleRequest request;
        request.shape = {
            ranks, def.implied_chunks.value_or(def.default_chunks), microbatches, 1, {}};
        if (def.refuse && !def.refuse(request).empty()) continue;
        const ValidSchedule pipeline = build_schedule(def, request);
        try {
          expect_rank_may_be_lost(pipeline, {2, ranks - 1});
        } catch (const Error&) {
          continue;
        }
        SCOPED_TRACE(def.name + ", " + std::to_string(ranks) + " ranks, " +
                     std::to_string(microbatches) + " micro-batches");
        EXPECT_NO_THROW(lose_rank(pipeline, {2, ranks - 1}));
        ++accepted;
      }
  EXPECT_GT(accepted, 100);
}

TEST(LoseRank, RefusesTwoPipelinesOfDifferentSize) {
  EXPECT_NO_THROW(lose_rank(build("gems", 2, 4), {2, 0}));
  EXPECT_TRUE(fails_with(
      [&] {
        lose_rank(build("gems", 2, 3), {2, 0});
      },
      "a multiple of 2 as `microbatches`"));
}

TEST(LoseRank, TurnsEndWithTheMicrobatches) {
  // 65536 replicas of one rank with one micro-batch each: replica 0 runs that of the lost rank.
  const ValidSchedule job = lose_rank(build("1f1b", 1, 1), {kMaxRanks, 0});
  EXPECT_EQ(job->turns_of_stage[0].size(), std::size_t{kMaxRanks});
  EXPECT_EQ(job->rank_of(0, kMaxRanks - 1), 0);
  EXPECT_EQ(job->order[0].size(), 4u);
}

TEST(LoseRank, RefusesJobsThatAreTooLarge) {
  struct Case {
    std::int32_t ranks;
    std::int32_t microbatches;
    std::int32_t replicas;
    const char* message;
  };
  for (const Case& each : {Case{2, 1, 65'536, "131072 ranks, the limit is 65536"},
                           Case{1, 1024, 20'000, "20480000 micro-batches, the limit is 16777216"},
                           Case{1, 40'000, 65'536, "2621440000 micro-batches"},
                           Case{4, 1024, 16'000, "131072000 ops, the limit is 100000000"}}) {
    SCOPED_TRACE(each.message);
    EXPECT_TRUE(fails_with(
        [&] {
          expect_rank_may_be_lost(build("1f1b", each.ranks, each.microbatches), {each.replicas, 0});
        },
        each.message));
  }
}

TEST(LoseRank, RefusesRanksAndReplicasThatAreNotThere) {
  const ValidSchedule pipeline = build("1f1b", 2, 2);
  EXPECT_EQ(error_of([&] { lose_rank(pipeline, {2, 2}); }), "`lose` names rank 2, ranks are 0..1");
  EXPECT_EQ(error_of([&] {
              lose_rank(pipeline, {2, -1});
            }),
            "`lose` names rank -1, ranks are 0..1");
  EXPECT_EQ(error_of([&] {
              lose_rank(pipeline, {1, 0});
            }),
            "`lose` needs other replicas of the pipeline; give their number as `replicas`");
  EXPECT_EQ(error_of([&] {
              lose_rank(build("pipedream", 2, 2), {2, 0});
            }),
            "`lose` cannot move the micro-batches of pipedream to other replicas: it updates "
            "weights within the step");
}

TEST(LoseRank, NativeFilesKeepTheTurnsAndTheTextFormRefusesThem) {
  const ValidSchedule job = lose_rank(build("zb-h1", 2, 3), {3, 1});
  const std::string text = traces::write_native_schedule(job);
  EXPECT_EQ(traces::read_native_schedule(text, "job.json"), *job);
  EXPECT_EQ(error_of([&] { traces::write_schedule_text(job); }),
            "the text form cannot express how replicas of a pipeline take turns, as those of "
            "zb-h1 do; write it as native");
}

TEST(RankLoss, TwoMicrobatchesWithoutAPipelineTakeTheirWork) {
  // One rank per replica: D = 2, m = 2. The other rank has 4 micro-batches of 9 ms.
  const ValidSchedule pipeline = build("1f1b", 1, 2);
  const LostRank lost{2, 0};
  const ValidSchedule rerouted = reroute(pipeline, lost, costs());
  const LossReport report =
      report_loss(pipeline, rerouted, {}, {lost, Nanos{5'000'000}, 0}, costs());
  EXPECT_EQ(report.healthy.step, 18'000'000);
  EXPECT_EQ(report.rerouted.step, 36'000'000);
  EXPECT_EQ(report.bound, 36'000'000);
  // It had worked for 5 ms of its own, which are repeated; the peer never waits.
  EXPECT_EQ(report.interrupted->lost_work, 5'000'000);
  EXPECT_EQ(report.interrupted->cost.step, 36'000'000);
}

TEST(RankLoss, AStepThatLosesARankAtItsStartIsOneOfTheNext) {
  const ValidSchedule pipeline = build("zb-h1", 3, 5);
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    const LostRank lost{3, rank};
    const ValidSchedule rerouted = reroute(pipeline, lost, costs());
    const LossReport report = report_loss(pipeline, rerouted, {}, {lost, Nanos{0}, 0}, costs());
    EXPECT_EQ(report.interrupted->cost.step, report.rerouted.step);
    EXPECT_EQ(report.interrupted->lost_work, 0);
  }
}

/// Forward 1 ms and backward 2 ms on each of so many stages.
CostTable make_table(std::size_t stages) {
  StageEntry stage;
  stage.forward = 1'000'000;
  stage.backward = 2'000'000;
  CostTable table;
  table.stages.assign(stages, stage);
  return table;
}

TEST(RankLoss, TheStepOfTheLossKeepsTheGapBetweenOps) {
  CostTable table = make_table(1);
  table.op_gap = 5'000'000;
  Config config;
  config.costs = table;
  const ValidSchedule pipeline = build("1f1b", 1, 2);
  const LostRank lost{2, 0};
  const ValidSchedule rerouted = reroute(pipeline, lost, config);
  const LossReport report = report_loss(pipeline, rerouted, {}, {lost, Nanos{0}, 0}, config);
  // 4 micro-batches of 3 ms, and 7 gaps between 8 ops.
  EXPECT_EQ(report.rerouted.step, 47'000'000);
  EXPECT_EQ(report.interrupted->cost.step, 47'000'000);
}

TEST(RankLoss, TheStepOfTheLossReducesSerialGradientsBehindItsLastOp) {
  UniformCost cost;
  cost.forward = 1'000'000;
  cost.input_grad = cost.weight_grad = 1'000'000;
  cost.update.reduce_grad = cost.update.optimizer = 1'000'000;
  Config config;
  config.costs = UniformCosts{cost};
  config.lower.update = {OptimizerMode::kBarrier, GradReduction::kSerial};
  const ValidSchedule pipeline = build("1f1b", 1, 2);
  const LostRank lost{2, 0};
  const ValidSchedule rerouted = reroute(pipeline, lost, config);
  const LossReport report = report_loss(pipeline, rerouted, {}, {lost, Nanos{0}, 0}, config);
  // 4 micro-batches of 3 ms, then the reduction, then the optimizer step.
  EXPECT_EQ(report.rerouted.step, 14'000'000);
  EXPECT_EQ(report.interrupted->cost.step, 14'000'000);
}

/// The message with which a Config is refused; empty where it is accepted.
std::string refusal_of(const Config& config) {
  return error_of([&] { reroute(build("1f1b", 2, 4), {2, 1}, config); });
}

TEST(RankLoss, ContendedCostsAreRefusedInEveryMessageMode) {
  CostTable of_stages = make_table(2);
  for (StageEntry& stage : of_stages.stages) {
    ContentionEntry& contended = stage.contended.emplace();
    contended[static_cast<std::size_t>(OpKind::kForward)] = {3'000'000};
  }
  CostTable of_messages = make_table(2);
  of_messages.contended_message = {1'000'000, 2'000'000};
  for (const CostTable& table : {of_stages, of_messages})
    for (const auto& mode : kP2pModes) {
      SCOPED_TRACE(mode.name);
      Config config;
      config.costs = table;
      config.lower.mode = mode.choice;
      EXPECT_NE(refusal_of(config).find("'contended'"), std::string::npos) << refusal_of(config);
    }
}

TEST(RankLoss, RefusalsNameTheInputAndTheReason) {
  Config given = costs();
  EXPECT_EQ(refusal_of(given), "");
  given.arrivals.assign(4, 0);
  EXPECT_EQ(refusal_of(given),
            "`lose` cannot be combined with `arrivals`, which lists the micro-batches of one "
            "pipeline; leave it out");
  given = costs();
  given.moves.sharding.emplace();
  EXPECT_NE(refusal_of(given).find("`fsdp`"), std::string::npos);
  given = costs();
  given.moves.offload.emplace();
  EXPECT_NE(refusal_of(given).find("`offload`"), std::string::npos);
}

TEST(RankLoss, TheTextSaysWhyTheOtherReplicasAreNotTimed) {
  const ValidSchedule pipeline = build("1f1b", 1, 2);
  const LostRank lost{2, 0};
  LossReport report =
      report_loss(pipeline, reroute(pipeline, lost, costs()), {}, {lost, {}, 0}, costs());
  report.left_refusal = "a schedule file has a fixed number of micro-batches";
  EXPECT_NE(traces::write_loss_text(report).find(
                "there would be 4 micro-batches on each of the others; not timed: a schedule "
                "file has a fixed number of micro-batches\n"),
            std::string::npos)
      << traces::write_loss_text(report);
}

TEST(RankLoss, ATimeAfterTheStepIsRefused) {
  const ValidSchedule pipeline = build("1f1b", 2, 2);
  const LostRank lost{2, 0};
  const ValidSchedule rerouted = reroute(pipeline, lost, costs());
  EXPECT_EQ(error_of([&] {
              report_loss(pipeline, rerouted, {}, {lost, Nanos{27'000'000}, 0}, costs());
            }),
            "`lose` says that the rank dies at 27 ms, but the step ends at 27 ms; give an "
            "earlier time");
}

}  // namespace
}  // namespace bubblescope::tests
