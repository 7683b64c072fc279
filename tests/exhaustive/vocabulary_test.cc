// Vocabulary parallelism: its closed forms with an output layer, and what its authors measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "sim/engine/simulate.h"
#include "sim/ir/after_edges.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "sim/model/uniform_network.h"
#include "sim/predict/predict.h"
#include "tests/support/as_written.h"
#include "tests/support/measured_schedule.h"

namespace bubblescope::tests {
namespace {

Nanos makespan_of(const char* name, std::int32_t ranks, std::int32_t microbatches,
                  const UniformCost& cost) {
  return simulate_times(build_for_costs(name, ranks, microbatches, cost), cost).makespan;
}

/// F takes 100 and B 200; each of the output layer's products takes `product` on each rank.
UniformCost cost_of(std::int32_t ranks, Nanos product) {
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 100;
  cost.output_layer = product * ranks;
  return cost;
}

TEST(Vocabulary, KeepsItsClosedFormsForEveryOutputLayer) {
  for (const char* name : {"1f1b-vocab", "1f1b-vocab-2"})
    for (std::int32_t ranks = 1; ranks <= 9; ++ranks)
      for (std::int32_t microbatches = 1; microbatches <= 4 * ranks + 1; ++microbatches)
        for (const Nanos product : {0, 10, 30, 60, 100, 150, 200, 400}) {
          ScheduleRequest request;
          request.shape.ranks = ranks;
          request.shape.microbatches = microbatches;
          request.cost = cost_of(ranks, product);
          const Claims claims = find_schedule(name).claims(request);
          EXPECT_EQ(makespan_of(name, ranks, microbatches, request.cost), claims.makespan)
              << name << " p=" << ranks << " m=" << microbatches << " o=" << product;
        }
}

// In the long run a rank is never idle, whatever the ratio of B to F and the size of the output
// layer: micro-batches m+1..2m take m intervals of F + B + 3 o.
TEST(Vocabulary, HasNoBubbleInItsSteadyState) {
  constexpr std::int32_t kMicrobatches = 40;
  for (const char* name : {"1f1b-vocab", "1f1b-vocab-2"})
    for (const std::int32_t ranks : {2, 3, 4, 8, 13})
      for (const Nanos backward : {100, 150, 200, 300})
        for (const Nanos product : {5, 40, 100, 300}) {
          UniformCost cost = cost_of(ranks, product);
          cost.backward = backward;
          const Nanos interval = 100 + backward + 3 * product;
          EXPECT_EQ(makespan_of(name, ranks, 2 * kMicrobatches, cost) -
                        makespan_of(name, ranks, kMicrobatches, cost),
                    kMicrobatches * interval)
              << name << " p=" << ranks << " B=" << backward << " o=" << product;
        }
}

// Figure 10 of the paper: p + 2 micro-batches for Algorithm 1, p + 1 for Algorithm 2.
TEST(Vocabulary, HoldsOneMoreMicrobatchPerBarrier) {
  const MemoryDelta delta;
  for (const std::int32_t ranks : {1, 2, 4, 8}) {
    const std::int32_t microbatches = 4 * ranks + 4;
    const UniformCost cost = cost_of(ranks, 20);
    EXPECT_EQ(walk_peaks(build_for_costs("1f1b", ranks, microbatches, cost), delta)[0], ranks);
    EXPECT_EQ(walk_peaks(build_for_costs("1f1b-vocab", ranks, microbatches, cost), delta)[0],
              ranks + 2);
    EXPECT_EQ(walk_peaks(build_for_costs("1f1b-vocab-2", ranks, microbatches, cost), delta)[0],
              ranks + 1);
  }
}

constexpr const char* kOnV[] = {"v-half-vocab", "v-half-vocab-2"};

// V-Half's block holds (p + 4) / 2 micro-batches at most, and every barrier one more, on all ranks
// within a micro-batch of each other: its memory is balanced.
TEST(Vocabulary, HoldsOneMoreMicrobatchPerBarrierOnAV) {
  const MemoryDelta delta;
  for (const std::int32_t ranks : {1, 2, 3, 4, 8, 16}) {
    const std::int32_t microbatches = 4 * ranks + 8;
    for (const std::int32_t barriers : {2, 1}) {
      const Schedule schedule =
          build_for_costs(kOnV[2 - barriers], ranks, microbatches, cost_of(ranks, 20));
      const std::vector<std::int64_t> chunks = walk_peaks(schedule, delta);
      const auto [least, most] = std::minmax_element(chunks.begin(), chunks.end());
      EXPECT_LE(*most, ranks + 4 + 2 * barriers) << ranks;
      EXPECT_LE(*most - *least, 2) << ranks;
    }
  }
}

// The whole output layer on the last stage, which is on rank 0 of a V, makes every interval longer.
TEST(Vocabulary, IsFasterThanVHalfWithTheWholeLayer) {
  for (const char* name : kOnV)
    for (const std::int32_t ranks : {4, 8}) {
      const UniformCost cost = cost_of(ranks, 30);
      EXPECT_LT(makespan_of(name, ranks, 64, cost), makespan_of("v-half", ranks, 64, cost));
    }
}

// Every message mode, with the messages to the shards and back.
TEST(Vocabulary, CannotDeadlockInAnyMessageMode) {
  for (const char* name : {"1f1b-vocab", "1f1b-vocab-2", "v-half-vocab", "v-half-vocab-2"})
    for (std::int32_t ranks = 1; ranks <= 6; ++ranks)
      for (const std::int32_t microbatches : {1, 2, ranks, 3 * ranks}) {
        const Schedule schedule = build_for_costs(name, ranks, microbatches, cost_of(ranks, 20));
        EXPECT_TRUE(validate(schedule).empty());
        for (const ModeVerdict& verdict : check_modes(schedule))
          EXPECT_FALSE(verdict.deadlock) << name << " " << to_string(verdict.mode, 1);
        for (const Named<P2pMode>& mode : kP2pModes) {
          LowerOptions options;
          options.mode = mode.choice;
          EXPECT_TRUE(std::holds_alternative<Program>(lower(schedule, options))) << mode.name;
        }
      }
}

// Without one of its barriers a schedule is faster or as fast: the barriers are waited for.
TEST(Vocabulary, WaitsForItsBarriers) {
  const UniformCost cost = cost_of(4, 50);
  Schedule schedule = build_for_costs("1f1b-vocab", 4, 12, cost);
  const Program program = lower_or_throw(schedule, Overlap::kAtomic);
  const Timeline timeline = simulate(program, spread(cost, schedule));
  std::map<std::string, InstructionId> ids;
  for (InstructionId id = 0; id < program.size(); ++id)
    ids[to_string(program.instructions[id].op)] = id;
  for (const AfterEdge& edge : schedule.after)
    EXPECT_GE(timeline.start[ids.at(to_string(edge.op))],
              timeline.end[ids.at(to_string(edge.awaited))])
        << to_string(edge);
  // Per micro-batch: p (p - 1) between the two passes.
  EXPECT_EQ(schedule.after.size(), 12u * 4 * 3);
}

// The last forward is sent to the p - 1 other ranks, whose shards send a gradient each; every other
// stage of the chain exchanges two messages with the next one.
TEST(Vocabulary, SendsTheOutputToAllShardsAndTheirGradientsBack) {
  for (const char* name : {"1f1b-vocab", "1f1b-vocab-2"})
    for (const std::int32_t ranks : {1, 2, 5}) {
      const Schedule schedule = build_for_costs(name, ranks, 3, cost_of(ranks, 50));
      const Program program = lower_or_throw(schedule, Overlap::kAtomic);
      const auto messages =
          std::count_if(program.instructions.begin(), program.instructions.end(),
                        [](const Instruction& instruction) { return is_message(instruction); });
      EXPECT_EQ(messages, 3 * 2 * 2 * (ranks - 1)) << name << " p=" << ranks;
    }
}

// One micro-batch on p ranks, a message taking c: the forward crosses p - 1 links, then the last
// stage's output goes to the shards and their gradients come back, and the backward crosses p - 1:
// p F + p B + 3 o + 2 p c. In Algorithm 2 the weight gradient o is not waited for; it overlaps
// everywhere but on rank 0, where it ends before the backward arrives.
TEST(Vocabulary, WaitsForTheMessagesOfItsBarriers) {
  for (std::int32_t ranks = 2; ranks <= 6; ++ranks) {
    UniformCost cost = cost_of(ranks, 50);
    cost.message = 7;
    const Nanos chain = ranks * (100 + 200) + 2 * ranks * cost.message;
    EXPECT_EQ(makespan_of("1f1b-vocab", ranks, 1, cost), chain + 3 * 50) << ranks;
    EXPECT_EQ(makespan_of("1f1b-vocab-2", ranks, 1, cost), chain + 2 * 50) << ranks;
  }
}

/// One row of Table 5 of Yeung et al. 2024: model FLOPs utilization in percent, by vocabulary.
struct PublishedRow {
  std::int32_t ranks;
  std::int64_t sequence;
  std::int64_t hidden;
  std::int64_t layers;
  double scaling_1;  ///< Table 3: efficiency of a shard relative to the whole layer, Algorithm 1
  double scaling_2;  ///< the same for Algorithm 2
  std::array<double, 4> baseline;
  std::array<double, 4> vocab_1;
  std::array<double, 4> vocab_2;
};

constexpr std::array<std::int64_t, 4> kVocabularies{32'000, 64'000, 128'000, 256'000};

constexpr PublishedRow kPublished[] = {
    {8,
     2048,
     3072,
     32,
     0.9129,
     0.8672,
     {46.16, 40.48, 33.11, 25.23},
     {50.42, 50.28, 49.93, 50.12},
     {50.23, 50.18, 49.82, 49.69}},
    {8,
     4096,
     3072,
     32,
     0.9321,
     0.8836,
     {47.05, 41.87, 35.00, 26.75},
     {50.98, 50.98, 50.83, 50.66},
     {50.93, 50.75, 50.56, 50.40}},
    {16,
     2048,
     4096,
     48,
     0.8422,
     0.7984,
     {45.66, 40.09, 32.44, 24.21},
     {49.02, 50.62, 50.54, 50.66},
     {48.90, 50.49, 50.46, 50.46}},
    {16,
     4096,
     4096,
     48,
     0.8802,
     0.8342,
     {47.56, 41.21, 33.88, 25.33},
     {50.93, 50.97, 50.71, 51.22},
     {50.97, 50.80, 50.68, 50.90}},
    {32,
     2048,
     5120,
     64,
     0.8059,
     0.7593,
     {42.81, 37.28, 28.97, 20.86},
     {45.85, 45.92, 45.90, 46.11},
     {45.54, 45.86, 45.86, 46.16}},
    {32,
     4096,
     5120,
     64,
     0.8524,
     0.7966,
     {43.68, 38.11, 30.05, 21.63},
     {46.41, 46.44, 46.68, 46.83},
     {46.23, 46.35, 46.55, 46.84}},
};

/// Table 4: a transformer layer takes b s h (72 h + 12 s) FLOPs and the output layer 6 b s h V,
/// forward and backward together, of which the forward is a third. A rank computes at half of an
/// A100's peak, 156 TFLOP/s.
UniformCost cost_of(const PublishedRow& row, std::int64_t vocabulary) {
  const double scale = static_cast<double>(row.sequence * row.hidden) / 156e3;
  const auto layers_of_rank = row.layers / row.ranks;
  UniformCost cost;
  cost.forward = std::llround(scale * static_cast<double>(24 * row.hidden + 4 * row.sequence) *
                              static_cast<double>(layers_of_rank));
  cost.input_grad = cost.weight_grad = cost.forward;
  cost.output_layer = std::llround(scale * 2 * static_cast<double>(vocabulary));
  return cost;
}

/// A step on the authors' cluster, nodes of 8 ranks over RoCE: 200 GB/s by NVLink, and between
/// nodes the 200 Gbit/s that an A100's PCIe allows.
Nanos makespan_on_cluster(const char* name, const PublishedRow& row, std::int32_t microbatches,
                          UniformCost cost) {
  UniformNetwork network;
  network.bytes = 2 * row.sequence * row.hidden;
  network.link_gbps = 1600;
  network.between_gbps = 200;
  network.ranks_per_node = 8;
  cost.message = 10'000;
  Config config;
  config.costs = UniformCosts{cost, network};
  config.detail = Detail::kBrief;
  const Schedule schedule = build_for_costs(name, row.ranks, microbatches, cost);
  return predict(require_valid(schedule), config).report.makespan;
}

// The gain in MFU over 1F1B with the whole output layer on the last rank, from FLOPs, the messages
// and the published efficiency of shards, is within 5 points of the published gain. In all cases
// splitting is better.
TEST(Vocabulary, GainsWhatItsAuthorsMeasured) {
  constexpr std::int32_t kMicrobatches = 128;
  const auto gain = [](const char* name, const PublishedRow& row, std::size_t at, double scaling) {
    const UniformCost whole = cost_of(row, kVocabularies[at]);
    UniformCost split = whole;
    split.output_layer = std::llround(static_cast<double>(whole.output_layer) / scaling);
    const auto baseline =
        static_cast<double>(makespan_on_cluster("1f1b", row, kMicrobatches, whole));
    const auto faster = static_cast<double>(makespan_on_cluster(name, row, kMicrobatches, split));
    return row.baseline[at] * (baseline / faster - 1);
  };
  for (const PublishedRow& row : kPublished)
    for (std::size_t at = 0; at < kVocabularies.size(); ++at) {
      const std::string what = std::to_string(row.ranks) + " ranks, s " +
                               std::to_string(row.sequence) + ", V " +
                               std::to_string(kVocabularies[at]);
      const double first = gain("1f1b-vocab", row, at, row.scaling_1);
      const double second = gain("1f1b-vocab-2", row, at, row.scaling_2);
      EXPECT_GT(first, 0) << what;
      EXPECT_GT(second, 0) << what;
      EXPECT_NEAR(first, row.vocab_1[at] - row.baseline[at], 5) << what;
      EXPECT_NEAR(second, row.vocab_2[at] - row.baseline[at], 5) << what;
    }
}

/// 1F1B whose layers are redistributed, in the paper's "Redis": the last rank has fewer, such that
/// the slowest rank is as fast as possible.
Nanos makespan_of_redistributed(const PublishedRow& row, std::int64_t vocabulary,
                                std::int32_t microbatches) {
  const UniformCost share = cost_of(row, vocabulary);
  const Nanos layer = share.forward * row.ranks / row.layers;
  const std::int64_t others = row.ranks - 1;
  std::int64_t on_last = 0;
  const auto slowest = [&](std::int64_t last) {
    const Nanos rest = (row.layers - last + others - 1) / others * layer;
    return std::max(rest, last * layer + share.output_layer);
  };
  for (std::int64_t last = 1; last <= row.layers / row.ranks; ++last)
    if (slowest(last) <= slowest(on_last)) on_last = last;
  const Schedule schedule = build_for_costs("1f1b", row.ranks, microbatches, share);
  CostModel costs = spread(share, schedule);
  for (std::int64_t stage = 0; stage < row.ranks; ++stage) {
    const bool last = stage == others;
    const std::int64_t spare = (row.layers - on_last) % others;
    const std::int64_t layers =
        last ? on_last : (row.layers - on_last) / others + (stage < spare ? 1 : 0);
    StageCost& cost = costs.stages[static_cast<std::size_t>(stage)];
    cost.forward = layers * layer + (last ? share.output_layer : 0);
    cost.backward = 2 * cost.forward;
  }
  const Program program = lower_or_throw(schedule, Overlap::kAtomic);
  return times_of(program, simulate(program, costs)).makespan;
}

// As published in all 24 cases: splitting the output layer is better than redistributing layers,
// and that is no worse than not to (measured: within 0.2 points where the layout is the same).
TEST(Vocabulary, IsFasterThanTheRedistributionOfLayers) {
  constexpr std::int32_t kMicrobatches = 128;
  for (const PublishedRow& row : kPublished)
    for (const std::int64_t vocabulary : kVocabularies) {
      const std::string what =
          std::to_string(row.ranks) + " ranks, V " + std::to_string(vocabulary);
      const UniformCost whole = cost_of(row, vocabulary);
      UniformCost split = whole;
      split.output_layer = std::llround(static_cast<double>(whole.output_layer) / row.scaling_2);
      const Nanos redistributed = makespan_of_redistributed(row, vocabulary, kMicrobatches);
      EXPECT_LE(redistributed, makespan_of("1f1b", row.ranks, kMicrobatches, whole)) << what;
      for (const char* name : {"1f1b-vocab", "1f1b-vocab-2"})
        EXPECT_LT(makespan_of(name, row.ranks, kMicrobatches, split), redistributed)
            << name << ", " << what;
    }
}

}  // namespace
}  // namespace bubblescope::tests
