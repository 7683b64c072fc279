// The default layers of a model's stages: which splits are tried, and what they depend on.
#include "sim/predict/choose_layers.h"

#include <gtest/gtest.h>

#include "sim/ir/timeline.h"
#include "sim/model/balance_layers.h"
#include "sim/model/schedule_def.h"
#include "sim/predict/predict.h"
#include "tests/support/built_schedule.h"

namespace bubblescope::tests {
namespace {

TEST(MoveSurplus, PutsTheLayersThatAreLeftOnOtherStages) {
  const LayerCounts counts{4, 4, 4, 4, 4, 5, 5, 2};
  EXPECT_EQ(move_surplus(counts, 0), (LayerCounts{5, 5, 4, 4, 4, 4, 4, 2}));
  EXPECT_EQ(move_surplus(counts, 3), (LayerCounts{4, 4, 4, 5, 5, 4, 4, 2}));
  EXPECT_EQ(move_surplus(counts, 5), counts);
  EXPECT_EQ(move_surplus(counts, 6), (LayerCounts{5, 4, 4, 4, 4, 4, 5, 2})) << "behind the end";
  // A stage that has even fewer keeps them.
  EXPECT_EQ(move_surplus({2, 4, 4, 5, 3}, 0), (LayerCounts{2, 5, 4, 4, 3}));
  // Where all stages have the same, they stay so.
  EXPECT_EQ(move_surplus({4, 4, 4, 3}, 2), (LayerCounts{4, 4, 4, 3}));
  EXPECT_EQ(move_surplus({7}, 0), std::nullopt);
  EXPECT_EQ(move_surplus({0, 0, 3}, 0), std::nullopt);
}

Config config_of(const char* model) {
  Config config;
  ModelCosts& costs = config.costs.emplace<ModelCosts>();
  costs.on.model = Registry<ModelDef>::instance().find(model)->model;
  costs.on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  costs.on.gpu.memory = Bytes{1} << 50;
  costs.on.parallel.sequence = costs.on.model.sequence;
  return config;
}

const ModelOnDevices& on_of(const Config& config) { return std::get<ModelCosts>(config.costs).on; }

// The example in choose_layers.h: of 32 layers, the head takes the time of about two.
TEST(ChooseLayers, GivesTheSurplusToTheFirstStagesOf1F1B) {
  const Config chosen = choose_layers(build("1f1b", 8, 16), config_of("llama3-8b"));
  EXPECT_EQ(on_of(chosen).parallel.layers_of_stage, (LayerCounts{5, 5, 4, 4, 4, 4, 4, 2}));
  ASSERT_TRUE(on_of(chosen).trials);
  EXPECT_LT(on_of(chosen).trials->shortest, on_of(chosen).trials->balanced);
}

TEST(ChooseLayers, KeepsLayersThatAreGiven) {
  Config config = config_of("llama3-8b");
  const LayerCounts given{4, 4, 4, 4, 4, 4, 4, 4};
  std::get<ModelCosts>(config.costs).on.parallel.layers_of_stage = given;
  const Config same = choose_layers(build("1f1b", 8, 16), config);
  EXPECT_EQ(on_of(same).parallel.layers_of_stage, given);
  EXPECT_FALSE(on_of(same).trials);
}

// 32 layers without the 5 of the last stage are 9 on each of 3; the Config keeps the rule.
TEST(ChooseLayers, LeavesGivenEndsToTheModel) {
  Config config = config_of("llama3-8b");
  std::get<ModelCosts>(config.costs).on.parallel.ends.last = 5;
  const ValidSchedule schedule = build("1f1b", 4, 8);
  const Config same = choose_layers(schedule, config);
  EXPECT_TRUE(on_of(same).parallel.layers_of_stage.empty());
  EXPECT_EQ(predict(schedule, same).models.placed->on.parallel.layers_of_stage,
            (LayerCounts{9, 9, 9, 5}));
}

// A search finds its order for balanced layers; costs that are not a model's have no layers.
TEST(ChooseLayers, LeavesOtherConfigsAsTheyAre) {
  Config config = config_of("llama3-8b");
  std::get<ModelCosts>(config.costs).tries_splits = false;
  const Config same = choose_layers(build("1f1b", 8, 16), config);
  EXPECT_TRUE(on_of(same).parallel.layers_of_stage.empty());
  Config uniform;
  uniform.costs = UniformCosts{};
  EXPECT_TRUE(
      std::holds_alternative<UniformCosts>(choose_layers(build("1f1b", 4, 8), uniform).costs));
}

TEST(ChooseLayers, AreTheSameWithSlowRanksAndNoise) {
  const ValidSchedule schedule = build("interleaved-zb", 4, 16);
  Config config = config_of("llama2-13b");
  const LayerCounts healthy = on_of(choose_layers(schedule, config)).parallel.layers_of_stage;
  config.slow_ranks.push_back({0, 1.5});
  config.scenarios.noise.op_jitter = 0.1;
  EXPECT_EQ(on_of(choose_layers(schedule, config)).parallel.layers_of_stage, healthy);
}

// simulate chooses before it has a Program, plan with one.
TEST(ChooseLayers, AreTheSameWithAndWithoutAProgram) {
  for (const char* name : {"1f1b", "gpipe", "zb-h1", "dualpipe"}) {
    const ValidSchedule schedule = build(name, 4, 32);
    const Config config = config_of("llama3-8b");
    const Config chosen = choose_layers(schedule, config);
    const Prediction whole = predict(schedule, config);
    EXPECT_EQ(whole.models.placed->on.parallel.layers_of_stage,
              on_of(chosen).parallel.layers_of_stage);
    EXPECT_EQ(whole.report.makespan, on_of(chosen).trials->shortest);
    EXPECT_EQ(predict(schedule, chosen).report.makespan, whole.report.makespan);
  }
}

// Devices without room for a larger first stage.
TEST(ChooseLayers, StayBalancedWhereNothingElseFits) {
  Config config = config_of("llama3-8b");
  ModelCosts& costs = std::get<ModelCosts>(config.costs);
  costs.may_shrink_gradients = false;
  const ValidSchedule schedule = build("1f1b", 8, 16);
  costs.on.gpu.memory = Bytes{1} << 30;
  const Config chosen = choose_layers(schedule, config);
  EXPECT_EQ(on_of(chosen).parallel.layers_of_stage, (LayerCounts{4, 4, 4, 4, 4, 5, 5, 2}));
  EXPECT_EQ(on_of(chosen).trials->count, 1);
}

}  // namespace
}  // namespace bubblescope::tests
