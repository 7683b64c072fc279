// Every rank of small jobs is lost: what remains never blocks, holds what it may, is within its
// bounds and trains the same as a single rank.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/lose_rank.h"
#include "sim/predict/rank_loss.h"
#include "tests/support/problem_text.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

struct Job {
  std::string schedule;
  Shape shape;
  LostRank lost;
};

std::string to_string(const Job& job) {
  return job.schedule + ", " + std::to_string(job.shape.ranks) + " ranks, " +
         std::to_string(job.shape.microbatches) + " micro-batches, " +
         std::to_string(job.lost.replicas) + " replicas, rank " + std::to_string(job.lost.rank);
}

/// Every rank of every shape up to these sizes.
std::vector<Job> list_jobs(const std::vector<std::string>& schedules, std::int32_t max_replicas,
                           std::int32_t max_ranks, std::int32_t max_microbatches) {
  std::vector<Job> jobs;
  for (const std::string& schedule : schedules)
    for (std::int32_t replicas = 2; replicas <= max_replicas; ++replicas)
      for (std::int32_t ranks = 1; ranks <= max_ranks; ++ranks)
        for (std::int32_t microbatches = 1; microbatches <= max_microbatches; ++microbatches)
          for (std::int32_t rank = 0; rank < ranks; ++rank)
            jobs.push_back({schedule, {ranks, 1, microbatches, 1, {}}, {replicas, rank}});
  return jobs;
}

ValidSchedule build_pipeline(const Job& job) {
  const ScheduleDef& def = find_schedule(job.schedule);
  ScheduleRequest request;
  request.shape = job.shape;
  request.shape.chunks = def.implied_chunks.value_or(def.default_chunks);
  return build_schedule(def, request);
}

Config odd_costs() {
  UniformCost cost;
  cost.forward = 3;
  cost.input_grad = 2;
  cost.weight_grad = 4;
  Config config;
  config.costs = UniformCosts{cost};
  return config;
}

Nanos work_of(const RankOrder& order) {
  Nanos work = 0;
  for (const Op& op : order)
    work += op.kind == OpKind::kForward      ? 3
            : op.kind == OpKind::kInputGrad  ? 2
            : op.kind == OpKind::kWeightGrad ? 4
                                             : 6;
  return work;
}

/// The most forwards that an order holds until their B or W.
int peak_of(const RankOrder& order) {
  int held = 0;
  int peak = 0;
  for (const Op& op : order) {
    held += op.kind == OpKind::kForward ? 1 : 0;
    peak = std::max(peak, held);
    held -= makes_weight_grad(op.kind) ? 1 : 0;
  }
  return peak;
}

/// The ops of the lost rank that a peer takes over.
RankOrder share_of(const RankOrder& order, const LostRank& lost, std::int32_t peer) {
  RankOrder share;
  for (const Op& op : order)
    if (op.microbatch % (lost.replicas - 1) == peer) share.push_back(op);
  return share;
}

void expect_memory_bound(const Job& job, const Schedule& pipeline, const Schedule& rerouted) {
  for (std::int32_t rank = 0; rank < pipeline.shape.ranks; ++rank)
    for (std::int32_t replica = 0; replica < job.lost.replicas_of(rank); ++replica) {
      int bound = peak_of(pipeline.order[rank]);
      if (rank == job.lost.rank)
        bound += peak_of(share_of(pipeline.order[rank], job.lost, replica));
      EXPECT_LE(peak_of(rerouted.order[job.lost.first_replica(rank) + replica]), bound);
    }
}

void expect_sound_next_steps(const Job& job) {
  SCOPED_TRACE(to_string(job));
  const ValidSchedule pipeline = build_pipeline(job);
  const ValidSchedule rerouted = reroute(pipeline, job.lost, odd_costs());
  ASSERT_TRUE(validate(rerouted).empty());
  expect_memory_bound(job, pipeline, rerouted);
  const Nanos own = work_of(pipeline->order[job.lost.rank]);
  Nanos busiest = 0;
  for (std::int32_t peer = 0; peer < job.lost.replicas - 1; ++peer)
    busiest =
        std::max(busiest, own + work_of(share_of(pipeline->order[job.lost.rank], job.lost, peer)));
  for (const Nanos at : {Nanos{0}, own / 3, 2 * own / 3}) {
    const LossReport report = report_loss(pipeline, rerouted, {}, {job.lost, at, 0}, odd_costs());
    EXPECT_GE(report.bound, busiest);
    EXPECT_GE(report.rerouted.step, report.bound);
    if (at == 0) {
      EXPECT_EQ(report.interrupted->cost.step, report.rerouted.step);
    }
    EXPECT_GE(report.interrupted->cost.step, at + busiest - own);
    EXPECT_LE(report.interrupted->lost_work, std::min(at, own));
    if (job.shape.ranks == 1) {  // peers never wait
      EXPECT_EQ(report.interrupted->cost.step, busiest);
      EXPECT_EQ(report.interrupted->lost_work, at);
    }
  }
}

TEST(LostRanks, AreReplacedWithinTheBoundsOfTimeAndMemory) {
  for (const Job& job : list_jobs({"1f1b", "gpipe", "zb-h1"}, 4, 4, 6))
    expect_sound_next_steps(job);
}

/// Costs per stage, of a rank with one.
Config gap_costs(Nanos op_gap, std::size_t stages) {
  StageEntry stage;
  stage.forward = 3;
  stage.input_grad = 2;
  stage.weight_grad = 4;
  stage.update = {.optimizer = 1, .reduce_grad = 2};
  CostTable table;
  table.stages.assign(stages, stage);
  table.op_gap = op_gap;
  Config config;
  config.costs = table;
  return config;
}

TEST(LostRanks, AtItsStartAStepIsAsTheNextWithEveryUpdateAndGap) {
  std::vector<Job> jobs = list_jobs({"1f1b", "zb-h1"}, 3, 3, 3);
  for (const char* const name : {"interleaved", "zb-v", "chimera"})
    for (std::int32_t rank = 0; rank < 2; ++rank)
      jobs.push_back({name, {2, 2, 4, 1, {}}, {3, rank}});
  for (const Job& job : jobs)
    for (const auto& optimizer : kOptimizerModes)
      for (const auto& reduction : kGradReductions)
        for (const Nanos op_gap : {0, 5}) {
          SCOPED_TRACE(to_string(job) + ", optimizer " + std::string(optimizer.name) +
                       ", reduction " + std::string(reduction.name) + ", gap " +
                       std::to_string(op_gap));
          const ValidSchedule pipeline = build_pipeline(job);
          Config config = gap_costs(op_gap, pipeline->stages_per_pipeline());
          config.lower.update = {optimizer.choice, reduction.choice};
          const ValidSchedule rerouted = reroute(pipeline, job.lost, config);
          const LossReport report =
              report_loss(pipeline, rerouted, {}, {job.lost, Nanos{0}, 0}, config);
          EXPECT_EQ(report.interrupted->cost.step, report.rerouted.step);
          EXPECT_EQ(report.interrupted->cost.peak, report.rerouted.peak);
        }
}

/// With b > f and one micro-batch each. Before the last stage, a peer's own backward delays the
/// damaged replica's by b. On the last stage, the peer has f + b more to do before the last
/// gradient leaves it.
TEST(LostRanks, OneMicrobatchOfOneFOneBTakesItsClosedForm) {
  for (const Job& job : list_jobs({"1f1b"}, 4, 4, 1)) {
    SCOPED_TRACE(to_string(job));
    const ValidSchedule pipeline = build_pipeline(job);
    const ValidSchedule rerouted = reroute(pipeline, job.lost, odd_costs());
    const LossReport report = report_loss(pipeline, rerouted, {}, {job.lost, {}, 0}, odd_costs());
    EXPECT_EQ(report.healthy.step, 9 * job.shape.ranks);
    const bool is_last = job.lost.rank == job.shape.ranks - 1;
    EXPECT_EQ(report.rerouted.step, 9 * job.shape.ranks + (is_last ? 9 : 6));
    EXPECT_FALSE(report.interrupted.has_value());
  }
}

TEST(LostRanks, TheirMicrobatchesTrainTheSameOnPeers) {
  std::vector<Job> jobs = list_jobs({"1f1b", "zb-h1"}, 4, 3, 4);
  for (const char* const name : {"zb-v", "chimera", "dualpipev", "interleaved"})
    for (std::int32_t rank = 0; rank < 2; ++rank)
      jobs.push_back({name, {2, 2, 4, 1, {}}, {3, rank}});
  for (const Job& job : jobs) {
    SCOPED_TRACE(to_string(job));
    const ValidSchedule rerouted = reroute(build_pipeline(job), job.lost, odd_costs());
    const exec::Verification verification = train(rerouted, lowered(rerouted), small_model());
    EXPECT_TRUE(verification.matches) << to_string(verification);
  }
}

// Rank 1 of the third replica has lost micro-batches 2 and 5 of six; rank 1 of the first one runs 2
// in its place.
TEST(LostRanks, AMicrobatchWithoutItsPeerIsMissing) {
  const Job job{"1f1b", {2, 1, 2, 1, {}}, {3, 1}};
  Schedule rerouted = lose_rank(build_pipeline(job), job.lost);
  RankOrder& peer = rerouted.order[static_cast<std::size_t>(job.lost.first_replica(1))];
  std::erase_if(peer, [&](const Op& op) { return job.lost.is_damaged(op.microbatch); });
  EXPECT_EQ(problems_of(rerouted),
            "1F2 is missing; add it to this rank\n"
            "1B2 is missing, and so are I and W; add B, or I and W");
}

}  // namespace
}  // namespace bubblescope::tests
