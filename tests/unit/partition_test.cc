// Partitions of small models, compared with enumeration and with results by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "schedules/partition/bottleneck.h"
#include "schedules/partition/prefixes.h"
#include "schedules/partition/replicated.h"
#include "sim/ir/error.h"
#include "sim/model/megatron_counts.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

constexpr unsigned kSeed = 7;

LayerGraph chain(const std::vector<Nanos>& times, Bytes parameters = 0) {
  LayerGraph graph;
  for (const Nanos time : times) {
    graph.inputs.emplace_back();
    if (graph.size() > 0) graph.inputs.back().push_back(graph.size() - 1);
    graph.layers.push_back({.name = "l" + std::to_string(graph.size()),
                            .kind = {},
                            .forward = time,
                            .backward = 0,
                            .activations = 1,
                            .parameters = parameters});
  }
  return graph;
}

std::vector<std::size_t> sizes(const schedules::Partition& partition) {
  std::vector<std::size_t> counts;
  for (const schedules::PartitionStage& stage : partition.stages)
    counts.push_back(stage.layers.size());
  return counts;
}

/// The minimum bottleneck over every way to split a chain.
Nanos try_every_cut(const std::vector<Nanos>& times, std::int32_t stages) {
  Nanos best = std::numeric_limits<Nanos>::max();
  const std::function<void(std::size_t, std::int32_t, Nanos)> cut =
      [&](std::size_t from, std::int32_t left, Nanos worst) {
        if (left == 0) {
          if (from == times.size()) best = std::min(best, worst);
          return;
        }
        Nanos time = 0;
        for (std::size_t at = from; at < times.size(); ++at) {
          time += times[at];
          cut(at + 1, left - 1, std::max(worst, time));
        }
      };
  cut(0, stages, 0);
  return best;
}

TEST(Partition, MinBottleneckIsThatOfEverySplit) {
  std::mt19937 dice(kSeed);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<Nanos> times(2 + dice() % 8);
    for (Nanos& time : times) time = static_cast<Nanos>(dice() % 20);
    for (std::int32_t stages = 1; stages <= static_cast<std::int32_t>(times.size()); ++stages) {
      const auto partition = schedules::min_bottleneck(chain(times), stages);
      ASSERT_TRUE(partition);
      EXPECT_EQ(partition->period, try_every_cut(times, stages)) << "seed " << kSeed;
      EXPECT_EQ(partition->stages.size(), static_cast<std::size_t>(stages));
    }
  }
}

// Straight and without weights, PipeDream's planner solves the same problem.
TEST(Partition, StraightPipedreamIsTheMinBottleneck) {
  std::mt19937 dice(kSeed);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<Nanos> times(4 + dice() % 6);
    for (Nanos& time : times) time = static_cast<Nanos>(1 + dice() % 20);
    const auto planned =
        schedules::plan_replicated(chain(times), {.levels = {{3, 1}}, .straight = true});
    ASSERT_TRUE(planned);
    EXPECT_EQ(planned->period, try_every_cut(times, 3)) << "seed " << kSeed;
  }
}

// Two equal branches between a first and a last layer: {a, b} and {c, d} are possible stages, and
// so are {a}, {a, b}, {a, c}, {a, b, c} and all as first parts.
TEST(Partition, SplitsAGraphOnlyWhereItsLayersHaveTheirInputs) {
  LayerGraph graph = chain({4, 3, 3, 4});
  graph.inputs = {{}, {0}, {0}, {1, 2}};
  const schedules::Prefixes prefixes = schedules::find_prefixes(graph, 100);
  EXPECT_EQ(prefixes.all.size(), 6u);  // includes the empty one
  const auto partition = schedules::min_bottleneck(graph, 2);
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->period, 7);
  EXPECT_EQ(sizes(*partition), (std::vector<std::size_t>{2, 2}));
}

// There are too many prefixes, so the layers are taken in a row.
TEST(Partition, WideGraphsAreSplitAsAChain) {
  LayerGraph graph = chain(std::vector<Nanos>(20, 1));
  for (auto& inputs : graph.inputs) inputs.clear();  // 2^20 prefixes
  EXPECT_EQ(schedules::find_prefixes(graph, 1000).all.size(), 21u);
}

// 10 us of work without weights on four workers: replicas share it evenly.
TEST(Partition, ReplicasShareTheWorkOfAStage) {
  const auto partition = schedules::plan_replicated(chain({2'000, 8'000}), {.levels = {{4, 1}}});
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->period, 2'500);  // 10 us over four replicas of one stage
  EXPECT_EQ(schedules::in_flight(*partition), std::vector<std::int32_t>{1});
}

// 16 bytes for each of 1001^2 parts of the model on 1 to 1024 workers would be 15 GiB.
TEST(Partition, RefusesPlansThatNoMemoryHolds) {
  EXPECT_THROW(schedules::plan_replicated(chain(std::vector<Nanos>(1000, 1)),
                                          {.levels = {{1024, 1}, {2, 1}}}),
               Error);
}

// T = 8 ns, W = 4 bytes, B = 4 bytes/ns, r = 2: (8 + 4 * 1 * 4 / (4 * 2)) / 2 = 5 against straight
// max(6, 2) = 6.
TEST(Partition, ReplicasPayForTheirAllReduce) {
  const auto partition =
      schedules::plan_replicated(chain({6, 2}, 2), {.levels = {{2, 4'000'000'000}}});
  ASSERT_TRUE(partition);
  EXPECT_EQ(partition->period, 5);
  EXPECT_EQ(partition->stages[0].replicas, 2);
}

// Three stages of one worker, weights 4, activations 1 each: the first holds 3 * 5, the last 5.
// Two layers of 10 ns, of which the first outputs 40 bytes: over 4e9 B/s they and their gradient
// take 20 ns, which is then the period, sent after the first stage.
TEST(Partition, TransfersAndWarningsCountMessagesByOneRule) {
  LayerGraph graph = chain({10, 10});
  graph.layers[0].activations = 40;
  const schedules::ReplicationRequest request{{{2, 4'000'000'000}}, true, true, {}};
  const schedules::Partition partition = *schedules::plan_replicated(graph, request);
  ASSERT_EQ(partition.stages.size(), 2U);
  EXPECT_EQ(partition.period, 20);
  EXPECT_EQ(schedules::compute_transfer_time(partition.stages[0].output, 4'000'000'000, 1), 20);
}

// Layer 0 feeds 1 and 2, which feed 3: after {0, 1} the output of 1 is sent; 0's is taken by 1 and
// counted there once, as PipeDream does. After {0, 1, 2} both of 1's and 2's are sent.
TEST(Partition, OutputsAreThoseOfTheSplitNotOfTheLastLayer) {
  LayerGraph graph = chain({1, 1, 1, 1});
  graph.inputs = {{}, {0}, {0}, {1, 2}};
  for (std::size_t at = 0; at < 4; ++at) graph.layers[at].activations = 10 + static_cast<Bytes>(at);
  const schedules::Partition partition = schedules::partition_by_counts(graph, {2, 1, 1});
  EXPECT_EQ(partition.stages[0].output, 11);
  EXPECT_EQ(partition.stages[1].output, 11 + 12);
  EXPECT_EQ(partition.stages[2].output, 13);
}

TEST(Partition, PipedreamKeepsWeightsForEveryMicrobatchInFlight) {
  const LayerGraph graph = chain({1, 1, 1}, 4);
  const schedules::ReplicationRequest fits{.levels = {{3, 1}}, .straight = true, .memory = 15};
  const schedules::ReplicationRequest lacks{.levels = {{3, 1}}, .straight = true, .memory = 14};
  const auto partition = schedules::plan_replicated(graph, fits);
  ASSERT_TRUE(partition);
  EXPECT_EQ(schedules::in_flight(*partition), (std::vector<std::int32_t>{3, 2, 1}));
  EXPECT_FALSE(schedules::plan_replicated(graph, lacks));
}

// Under 1F1B the first of two stages holds two micro-batches, the last one. Layers take 1 ns and 1
// byte of activations: split in the middle, the first stage holds 2 * 3 bytes; with 4 bytes
// available it can only have two layers, and the bottleneck grows from 3 to 4.
TEST(Partition, MemoryMovesTheSplit) {
  const LayerGraph graph = chain({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(schedules::min_bottleneck(graph, 2)->period, 3);
  const auto partition = schedules::min_bottleneck(graph, 2, schedules::StageMemory{{2, 1}, 1, 4});
  ASSERT_TRUE(partition);
  EXPECT_EQ(sizes(*partition), (std::vector<std::size_t>{2, 4}));
  EXPECT_EQ(partition->period, 4);
  EXPECT_FALSE(schedules::min_bottleneck(graph, 2, schedules::StageMemory{{2, 1}, 1, 3}));
}

// Two blocks: torchgpipe's own test. Three: layers weigh 0 to 5 more than the lightest, blocks
// start as 1, 5, 9 and become 3, 3, 9 - 6, 0, 9 - 6, 4, 5: the heaviest is no more than one layer,
// 5, heavier than the lightest.
TEST(Partition, BlocksAreTorchgpipes) {
  EXPECT_EQ(sizes(schedules::make_torchgpipe_partition(chain({1, 2, 3, 4, 5, 6}), 2)),
            (std::vector<std::size_t>{4, 2}));
  EXPECT_EQ(sizes(schedules::make_torchgpipe_partition(chain({1, 2, 3, 4, 5, 6}), 3)),
            (std::vector<std::size_t>{4, 1, 1}));
  EXPECT_EQ(sizes(schedules::make_torchgpipe_partition(chain({5, 5, 5}), 3)),
            (std::vector<std::size_t>{1, 1, 1}));
}

// 30 layers with embedding and loss counted are 32 on 4 stages: the first and last have one less.
TEST(Partition, MegatronCountsEmbeddingAndLossAsLayers) {
  EXPECT_EQ(compute_megatron_counts(30, 4, {.counts_embedding = true, .counts_loss = true}),
            (std::vector<std::int32_t>{7, 8, 8, 7}));
  EXPECT_EQ(compute_megatron_counts(32, 4, {}), (std::vector<std::int32_t>{8, 8, 8, 8}));
  EXPECT_EQ(compute_megatron_counts(20, 4, {.first = 3, .last = 5}),
            (std::vector<std::int32_t>{3, 6, 6, 5}));
  EXPECT_EQ(compute_megatron_counts(9, 4, {.first = 3}), (std::vector<std::int32_t>{3, 2, 2, 2}));
  EXPECT_EQ(compute_megatron_counts(5, 2, {.first = 3, .last = 2}),
            (std::vector<std::int32_t>{3, 2}));
  EXPECT_EQ(error_of([&] { compute_megatron_counts(6, 2, {.first = 3, .last = 2}); }),
            "the ends have 5 of 6 layers, and there is no other stage for the rest; choose a "
            "larger `first_layers` or `last_layers`");
  EXPECT_EQ(
      error_of([&] { compute_megatron_counts(30, 4, {}); }),
      "30 layers cannot be divided evenly into 4 stages; give `first_layers` or `last_layers`");
  EXPECT_EQ(
      error_of([&] { compute_megatron_counts(20, 4, {.first = 4, .last = 5}); }),
      "11 layers cannot be divided evenly into the 2 inner stages; choose other `first_layers` "
      "or `last_layers`");
}

}  // namespace
}  // namespace bubblescope::tests
