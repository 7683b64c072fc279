// Layer splits: the layers of each stage, their memory, and that no better split fits.
#include "sim/analysis/layer_split.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "sim/analysis/memory_curve.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/model_step.h"
#include "sim/model/schedule_def.h"
#include "tests/support/all_layer_counts.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const char* model, std::int64_t layers) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.model.layers = layers;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = on.model.sequence;
  return on;
}

ValidSchedule order_of(const char* name, std::int32_t ranks, std::int32_t microbatches,
                       std::int32_t chunks = 1) {
  ScheduleRequest request;
  request.shape.ranks = ranks;
  request.shape.microbatches = microbatches;
  request.shape.chunks = chunks;
  return build_schedule(find_schedule(name), request);
}

/// The memory of the fullest rank, computed by a simulation.
Bytes peak_of(ModelOnDevices on, const Schedule& schedule, const LayerCounts& counts) {
  on.parallel.layers_of_stage = counts;
  const ModelStep step = compute_model_step(on, schedule);
  const Program program = std::get<Program>(lower(schedule, {}));
  MemoryModel memory;
  memory.activation_bytes = step.activation_bytes;
  for (const StateBytes& states : step.states) memory.static_bytes.push_back(states.total());
  Bytes most = 0;
  for (const Peak& peak : find_peaks(schedule, program, simulate(program, step.costs), memory))
    most = std::max(most, peak.bytes.value_or(0));
  return most;
}

TEST(LayerSplits, RankMemoryFollowsFromTheOrders) {
  struct Case {
    Recompute recompute = Recompute::kFull;
    RecomputedLayers layers = {};
  };
  for (const Case& each :
       {Case{Recompute::kNone}, Case{}, Case{Recompute::kFull, {RecomputeMethod::kBlock, 2}},
        Case{Recompute::kFull, {RecomputeMethod::kUniform, 3}}})
    for (const char* name : {"1f1b", "gpipe", "zb-h1", "zb-h2", "zb-v", "interleaved", "hanayo",
                             "dualpipe", "dualpipev", "chimera", "eager-1f1b", "1f1b-vocab",
                             "1f1b-vocab-2", "v-half-vocab", "v-half-vocab-2"}) {
      ModelOnDevices on = on_devices("llama3-8b", 16);
      on.parallel.recompute = each.recompute;
      on.parallel.recomputed = each.layers;
      const ScheduleDef& def = find_schedule(name);
      const bool interleaves = std::string(name) == "interleaved";
      const ValidSchedule schedule =
          order_of(name, 4, 8, def.implied_chunks.value_or(interleaves ? 2 : 1));
      const LayerAssigner assigner(on, schedule);
      const LayerCounts counts = *assigner.assign_layers(LayerSplit::kBalanced);
      EXPECT_EQ(assigner.load(counts).fullest_rank, peak_of(on, schedule, counts)) << name;
    }
}

TEST(LayerSplits, NoSplitThatFitsIsFasterThanTheFittedOne) {
  for (const char* name : {"1f1b", "zb-h1", "gpipe"}) {
    const ValidSchedule schedule = order_of(name, 3, 6);
    ModelOnDevices on = on_devices("llama3-8b", 8);
    const LayerAssigner any(on, schedule);
    const std::vector<LayerCounts> all = list_layer_counts(8, 3);
    std::vector<SplitLoad> loads;
    for (const LayerCounts& counts : all) loads.push_back(any.load(counts));
    for (const SplitLoad& limit : loads) {
      on.gpu.memory = limit.fullest_rank;
      double least = std::numeric_limits<double>::infinity();
      for (const SplitLoad& load : loads)
        if (load.fullest_rank <= on.gpu.memory) least = std::min(least, load.slowest_stage);
      const LayerAssigner assigner(on, schedule);
      const std::optional<LayerCounts> fitted = assigner.assign_layers(LayerSplit::kFitted);
      ASSERT_TRUE(fitted) << name;
      const SplitLoad found = assigner.load(*fitted);
      EXPECT_LE(found.fullest_rank, on.gpu.memory) << name;
      EXPECT_DOUBLE_EQ(found.slowest_stage, least) << name << " in " << on.gpu.memory;
    }
    on.gpu.memory = std::min_element(loads.begin(), loads.end(),
                                     [](auto& left, auto& right) {
                                       return left.fullest_rank < right.fullest_rank;
                                     })
                        ->fullest_rank -
                    1;
    EXPECT_FALSE(LayerAssigner(on, schedule).assign_layers(LayerSplit::kFitted)) << name;
  }
}

// Llama 3 (arXiv 2407.21783, section 3.3.2): 126 layers, one less on the first and on the last of
// 128 stages. On 16 stages that is 7, 14 times 8, 7.
TEST(LayerSplits, EndsAreThoseOfLlama3) {
  const ModelOnDevices on = on_devices("llama3-405b", 126);
  LayerCounts expected(128, 1);
  expected.front() = expected.back() = 0;
  const ValidSchedule interleaved = order_of("interleaved", 16, 16, 8);
  EXPECT_EQ(LayerAssigner(on, interleaved).assign_layers(LayerSplit::kEnds), expected);
  expected.assign(16, 8);
  expected.front() = expected.back() = 7;
  const ValidSchedule plain = order_of("1f1b", 16, 16);
  EXPECT_EQ(LayerAssigner(on, plain).assign_layers(LayerSplit::kEnds), expected);
}

TEST(LayerSplits, EvenOnesNeedLayersThatDivide) {
  const ValidSchedule schedule = order_of("1f1b", 4, 8);
  const ModelOnDevices divides = on_devices("llama3-8b", 32);
  EXPECT_EQ(LayerAssigner(divides, schedule).assign_layers(LayerSplit::kEven), LayerCounts(4, 8));
  const ModelOnDevices does_not = on_devices("llama3-8b", 30);
  EXPECT_FALSE(LayerAssigner(does_not, schedule).assign_layers(LayerSplit::kEven));
}

TEST(LayerSplits, AssignEveryLayerOnce) {
  for (const std::int64_t layers : {6, 13, 61})
    for (const char* model : {"llama3-8b", "deepseek-v3"})
      for (const std::int32_t ranks : {1, 2, 4, 8}) {
        ModelOnDevices on = on_devices(model, layers);
        on.parallel.expert = 1;
        const ValidSchedule schedule = order_of("1f1b", ranks, 8);
        const LayerAssigner assigner(on, schedule);
        for (const auto& split : kLayerSplits) {
          const std::optional<LayerCounts> counts = assigner.assign_layers(split.choice);
          if (!counts) continue;
          EXPECT_EQ(counts->size(), static_cast<std::size_t>(ranks)) << split.name;
          EXPECT_EQ(std::accumulate(counts->begin(), counts->end(), std::int64_t{0}), layers);
        }
      }
}

TEST(LayerSplits, DominatedSplitsAreNotTried) {
  const std::vector<LayerSplit> all{LayerSplit::kBalanced, LayerSplit::kEven, LayerSplit::kEnds,
                                    LayerSplit::kFitted};
  ModelOnDevices on = on_devices("llama3-8b", 16);
  const ValidSchedule schedule = order_of("1f1b", 4, 8);
  const LayerAssigner roomy(on, schedule);
  const auto worth = roomy.select_splits(all);
  ASSERT_TRUE(worth[0]);
  EXPECT_FALSE(worth[3]) << "the balanced split fits, there is nothing to fit";
  for (std::size_t at = 1; at < worth.size(); ++at) {
    if (!worth[at]) continue;
    for (std::size_t before = 0; before < at; ++before) {
      if (!worth[before]) continue;
      EXPECT_FALSE(roomy.load(*worth[before]).dominates(roomy.load(*worth[at])));
    }
  }
  // With one byte less than the balanced split needs, there is a fitted split.
  on.gpu.memory = roomy.load(*worth[0]).fullest_rank - 1;
  const LayerAssigner tight(on, schedule);
  const auto fitted = tight.select_splits(std::vector{LayerSplit::kBalanced, LayerSplit::kFitted});
  ASSERT_TRUE(fitted[1]);
  EXPECT_LE(tight.load(*fitted[1]).fullest_rank, on.gpu.memory);
  EXPECT_GT(tight.load(*fitted[1]).slowest_stage, tight.load(*fitted[0]).slowest_stage);
}

TEST(LayerSplits, OrdersThatCopyActivationsKeepTheFirst) {
  const ModelOnDevices on = on_devices("llama3-8b", 16);
  const ValidSchedule schedule = order_of("bpipe", 4, 8);
  const std::vector<LayerSplit> all{LayerSplit::kBalanced, LayerSplit::kEven, LayerSplit::kFitted};
  const auto worth = LayerAssigner(on, schedule).select_splits(all);
  EXPECT_TRUE(worth[0]);
  EXPECT_FALSE(worth[1]);
  EXPECT_FALSE(worth[2]);
}

}  // namespace
}  // namespace bubblescope::tests
