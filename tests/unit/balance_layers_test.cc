// Balanced layers: exact for layers that are alike, near it where they differ, within memory.
#include "sim/model/balance_layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include "sim/ir/placement.h"
#include "sim/model/model_step.h"
#include "sim/model/place_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/all_layer_counts.h"

namespace bubblescope::tests {
namespace {

StageHolders hold(std::int32_t ranks, std::int32_t chunks,
                  std::vector<std::int32_t> rank_of_stage) {
  Schedule schedule;
  schedule.shape.ranks = ranks;
  schedule.shape.chunks = chunks;
  schedule.rank_of_stage = std::move(rank_of_stage);
  return find_stage_holders(schedule);
}

/// A chain both ways: rank r holds stage r, and stage p-1-r of the other direction.
StageHolders hold_both_ways(std::int32_t ranks) {
  Schedule schedule;
  schedule.shape.ranks = ranks;
  schedule.pipelines = 2;
  schedule.rank_of_stage = bidirectional_placement(ranks);
  return find_stage_holders(schedule);
}

/// The slowest rank and the slowest stage; the slowest stage alone where stages set the pace.
using Figures = std::pair<double, double>;

Figures judge(const StageHolders& holders, const BalanceProblem& problem,
              const LayerCounts& counts) {
  std::vector<double> ranks(holders.stages_of_rank.size(), 0);
  double slowest_stage = 0;
  std::int64_t first = 0;
  for (std::int32_t stage = 0; stage < holders.stages(); ++stage) {
    const auto at = static_cast<std::size_t>(stage);
    const double time = problem.time ? problem.time(stage, first, first + counts[at])
                                     : problem.mean_time(stage, counts[at]);
    first += counts[at];
    slowest_stage = std::max(slowest_stage, time);
    for (const std::int32_t rank : holders.ranks_of_stage[at])
      ranks[static_cast<std::size_t>(rank)] += time;
  }
  const auto rounded = [](double time) { return std::round(time * 1e6) / 1e6; };
  const double slowest_rank = *std::max_element(ranks.begin(), ranks.end());
  return {rounded(holders.stages_set_pace ? slowest_stage : slowest_rank), rounded(slowest_stage)};
}

Figures find_least(const StageHolders& holders, const BalanceProblem& problem) {
  Figures least{1e300, 1e300};
  for (const LayerCounts& counts :
       list_layer_counts(problem.layers, static_cast<std::size_t>(holders.stages())))
    least = std::min(least, judge(holders, problem, counts));
  return least;
}

std::vector<StageHolders> all_kinds_of_holders() {
  return {hold(5, 1, loop_placement(5, 1)),
          hold(2, 2, loop_placement(2, 2)),
          hold(3, 2, loop_placement(3, 2)),
          hold(2, 3, loop_placement(2, 3)),
          hold(3, 2, zigzag_placement(3, 2)),
          hold(2, 3, zigzag_placement(2, 3)),
          hold_both_ways(4),
          hold_both_ways(6)};
}

BalanceProblem with_tables(std::int64_t layers, double embedding, double head,
                           std::int32_t stages) {
  BalanceProblem problem;
  problem.layers = layers;
  problem.mean_time = [=](std::int32_t stage, std::int64_t count) {
    return static_cast<double>(count) + (stage == 0 ? embedding : 0) +
           (stage + 1 == stages ? head : 0);
  };
  return problem;
}

TEST(BalancedLayers, HaveTheLeastSlowestRankOrStage) {
  for (const StageHolders& holders : all_kinds_of_holders())
    for (std::int64_t layers = 0; layers <= 9; ++layers)
      for (const double embedding : {0.0, 0.2, 1.0})
        for (const double head : {0.0, 0.6, 1.7, 2.0, 4.5}) {
          const BalanceProblem problem = with_tables(layers, embedding, head, holders.stages());
          const LayerCounts counts = *balance_layers(holders, problem);
          EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), layers);
          const Figures found = judge(holders, problem, counts);
          const Figures least = find_least(holders, problem);
          EXPECT_NEAR(found.first, least.first, 1e-6) << layers << " " << embedding << " " << head;
          EXPECT_NEAR(found.second, least.second, 1e-6)
              << layers << " " << embedding << " " << head;
        }
}

// The example in balance_layers.h.
TEST(BalancedLayers, LevelTheRanksWhereStagesLeaveAChoice) {
  const StageHolders holders = hold(2, 2, zigzag_placement(2, 2));
  EXPECT_EQ(balance_layers(holders, with_tables(5, 0, 1.5, 4)), (LayerCounts{2, 1, 2, 0}));
}

// A stage's first layer costs the host a pass, and the host's time hides behind a head: then no
// split by ranks may have room for all layers, and each one is placed all the same.
TEST(BalancedLayers, PlaceAllLayersWhereTimesAreNotProportional) {
  for (const StageHolders& holders : all_kinds_of_holders())
    for (std::int64_t layers = 1; layers <= 9; ++layers)
      for (const double pass : {0.3, 1.0, 2.5})
        for (const double head : {0.0, 1.7, 4.5}) {
          BalanceProblem problem;
          problem.layers = layers;
          problem.mean_time = [&](std::int32_t stage, std::int64_t count) {
            const auto device =
                static_cast<double>(count) + (stage + 1 == holders.stages() ? head : 0);
            return count == 0 ? device : std::max(device, pass + 1.2 * static_cast<double>(count));
          };
          const std::optional<LayerCounts> counts = balance_layers(holders, problem);
          ASSERT_TRUE(counts);
          EXPECT_EQ(std::accumulate(counts->begin(), counts->end(), std::int64_t{0}), layers);
          if (!holders.stages_set_pace) continue;
          EXPECT_NEAR(judge(holders, problem, *counts).first, find_least(holders, problem).first,
                      1e-6);
        }
}

// 2401.10241: "both the initial and final pipeline stages possess one fewer transformer layer".
TEST(BalancedLayers, GiveTheEndsLessWhereTheyHoldTheTables) {
  const StageHolders holders = hold(8, 1, loop_placement(8, 1));
  EXPECT_EQ(balance_layers(holders, with_tables(22, 1, 1, 8)),
            (LayerCounts{2, 3, 3, 3, 3, 3, 3, 2}));
  // One layer more than stages: the last of those without a table holds the fewest micro-batches.
  EXPECT_EQ(balance_layers(hold(4, 1, loop_placement(4, 1)), with_tables(5, 0.5, 0.5, 4)),
            (LayerCounts{1, 1, 2, 1}));
  // Llama 3's 126 layers on 128 stages: the embedding and the head have their own.
  const LayerCounts llama =
      *balance_layers(hold(128, 1, loop_placement(128, 1)), with_tables(126, 0.1, 0.9, 128));
  EXPECT_EQ(llama.front(), 0);
  EXPECT_EQ(llama.back(), 0);
}

// A slow device's layers take twice as long: with two fast and two slow ranks, 12 layers are 4 and
// 4 on the fast ones, 2 and 2 on the slow ones.
TEST(BalancedLayers, FollowTheSpeedOfTheRanks) {
  BalanceProblem problem;
  problem.layers = 12;
  problem.mean_time = [](std::int32_t stage, std::int64_t count) {
    return static_cast<double>(count) * (stage % 4 < 2 ? 1 : 2);
  };
  EXPECT_EQ(balance_layers(hold(4, 1, loop_placement(4, 1)), problem), (LayerCounts{4, 4, 2, 2}));
  EXPECT_EQ(balance_layers(hold(4, 2, loop_placement(4, 2)), problem),
            (LayerCounts{2, 2, 1, 1, 2, 2, 1, 1}));
}

TEST(BalancedLayers, StayWhereThereIsRoom) {
  const StageHolders holders = hold(2, 2, zigzag_placement(2, 2));
  BalanceProblem problem = with_tables(8, 0, 0, 4);
  problem.has_room = [](std::int32_t stage, const LayerCounts& counts) {
    return stage != 3 || counts[3] <= 1;
  };
  EXPECT_EQ(balance_layers(holders, problem), (LayerCounts{3, 2, 2, 1}));
  problem.has_room = [](std::int32_t, const LayerCounts& counts) {
    return *std::max_element(counts.begin(), counts.end()) <= 1;
  };
  EXPECT_FALSE(balance_layers(holders, problem));
}

// Two kinds of layers in random positions: the split is within half a layer of
// the best split's slowest rank or stage, and at it in nine of ten problems.
TEST(BalancedLayers, AreNearTheBestWhereLayersDiffer) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  int problems = 0;
  int exact = 0;
  for (const StageHolders& holders : all_kinds_of_holders())
    for (int round = 0; round < 12; ++round) {
      const std::int64_t layers = 5 + static_cast<std::int64_t>(random() % 4);
      const double dense = 0.5 + static_cast<double>(random() % 8) / 16;
      const auto first_experts = static_cast<std::int64_t>(random() % 4);
      std::vector<double> sums{0};
      for (std::int64_t layer = 0; layer < layers; ++layer)
        sums.push_back(sums.back() + (layer < first_experts ? dense : 1));
      BalanceProblem problem = with_tables(layers, 0.1, 1.3, holders.stages());
      const double mean = sums.back() / static_cast<double>(layers);
      const auto tables = problem.mean_time;
      problem.mean_time = [=](std::int32_t stage, std::int64_t count) {
        return tables(stage, 0) + mean * static_cast<double>(count);
      };
      problem.time = [=](std::int32_t stage, std::int64_t first, std::int64_t end) {
        const double layers_time =
            sums[static_cast<std::size_t>(end)] - sums[static_cast<std::size_t>(first)];
        return tables(stage, 0) + layers_time;
      };
      const double found = judge(holders, problem, *balance_layers(holders, problem)).first;
      const double least = find_least(holders, problem).first;
      EXPECT_LE(found, least + 0.5) << "seed " << kSeed << ", problem " << problems;
      ++problems;
      exact += found <= least + 1e-9 ? 1 : 0;
    }
  EXPECT_GE(10 * exact, 9 * problems) << exact << " of " << problems;
}

}  // namespace
}  // namespace bubblescope::tests
