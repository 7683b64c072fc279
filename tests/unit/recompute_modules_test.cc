// Recomputation of modules by their names, and the memory and the time that it exchanges.
#include "sim/model/recompute_modules.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "sim/ir/registry.h"
#include "sim/model/activation_bytes.h"
#include "sim/model/layer_cost.h"
#include "sim/model/module_sets.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const char* model) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = 4096;
  return on;
}

ModelOnDevices recomputing(ModelOnDevices on, std::initializer_list<RecomputeModule> modules) {
  on.parallel.recompute = Recompute::kSelective;
  for (const RecomputeModule module : modules) on.parallel.modules.add(module);
  return on;
}

/// The time that one layer's backward takes longer, in nanoseconds.
double added_time(const ModelOnDevices& on, std::int64_t layer) {
  ModelOnDevices keeping = on;
  keeping.parallel.recompute = Recompute::kNone;
  return estimate_layer_times(on, layer).input_grad -
         estimate_layer_times(keeping, layer).input_grad;
}

/// The bytes that one layer's forward need not save.
Bytes freed_bytes(const ModelOnDevices& on, std::int64_t layer) {
  ModelOnDevices keeping = on;
  keeping.parallel.recompute = Recompute::kNone;
  return estimate_layer_memory(on.model, keeping.parallel, layer).forward -
         estimate_layer_memory(on.model, on.parallel, layer).forward;
}

// Llama 3 8B: gate, inner and activation of 14,336 numbers of 2 bytes for each of 4,096 tokens.
TEST(RecomputeModules, GiveBackTheTensorsBetweenTheirProducts) {
  const ModelOnDevices mlp = recomputing(on_devices("llama3-8b"), {RecomputeModule::kNetwork});
  EXPECT_EQ(freed_bytes(mlp, 0), 3 * 2 * 14'336 * 4096);
  const ModelOnDevices norms = recomputing(on_devices("llama3-8b"), {RecomputeModule::kLayerNorm});
  EXPECT_EQ(freed_bytes(norms, 0), 2 * 2 * 4096 * 4096);
  // Flash attention saves one number of 4 bytes for each of 32 heads and each token.
  const ModelOnDevices core =
      recomputing(on_devices("llama3-8b"), {RecomputeModule::kCoreAttention});
  EXPECT_EQ(freed_bytes(core, 0), 4 * 32 * 4096);
}

TEST(RecomputeModules, TakeLessTimeThanTheWholeLayer) {
  ModelOnDevices full = on_devices("llama3-8b");
  full.parallel.recompute = Recompute::kFull;
  const double whole = added_time(full, 0);
  const double network =
      added_time(recomputing(on_devices("llama3-8b"), {RecomputeModule::kNetwork}), 0);
  const double norms =
      added_time(recomputing(on_devices("llama3-8b"), {RecomputeModule::kLayerNorm}), 0);
  EXPECT_GT(norms, 0);
  EXPECT_GT(network, 5 * norms);
  EXPECT_LT(network, whole);
  const double both =
      added_time(recomputing(on_devices("llama3-8b"),
                             {RecomputeModule::kNetwork, RecomputeModule::kLayerNorm}),
                 0);
  EXPECT_NEAR(both, network + norms, 1);
}

// DeepSeek-V3: layer 0 is dense, layer 3 has 8 routed experts and a shared one per token.
TEST(RecomputeModules, AreThoseThatALayerHas) {
  const ModelOnDevices model = on_devices("deepseek-v3");
  const auto freed = [&](RecomputeModule module, std::int64_t layer) {
    return freed_bytes(recomputing(model, {module}), layer);
  };
  EXPECT_GT(freed(RecomputeModule::kUpProjection, 0), 0);
  EXPECT_GT(freed(RecomputeModule::kNetwork, 0), 0);
  EXPECT_EQ(freed(RecomputeModule::kNetwork, 3), 0);
  EXPECT_EQ(freed(RecomputeModule::kExperts, 0), 0);
  EXPECT_EQ(freed(RecomputeModule::kExpertActivation, 3), 2 * 8 * 2048 * 4096);
  EXPECT_EQ(freed(RecomputeModule::kSharedExperts, 3), 3 * 2 * 2048 * 4096);
  // All 9 networks, and 8 of the 9 copies of their input.
  EXPECT_EQ(freed(RecomputeModule::kExperts, 3), 9 * 3 * 2 * 2048 * 4096 + 8 * 2 * 7168 * 4096);
  EXPECT_EQ(added_time(recomputing(model, {RecomputeModule::kNetwork}), 3), 0);
  EXPECT_GT(added_time(recomputing(model, {RecomputeModule::kExperts}), 3),
            added_time(recomputing(model, {RecomputeModule::kSharedExperts}), 3));
}

// Megatron's selective recomputation of latent attention is that of its up-projections.
TEST(RecomputeModules, ReplaceTheChoiceOfTheRuntime) {
  ModelOnDevices chosen = on_devices("deepseek-v3");
  chosen.parallel.recompute = Recompute::kSelective;
  const ModelOnDevices named =
      recomputing(on_devices("deepseek-v3"), {RecomputeModule::kUpProjection});
  EXPECT_EQ(added_time(named, 3), added_time(chosen, 3));
  EXPECT_LT(freed_bytes(named, 3), freed_bytes(chosen, 3));
}

// Names are read as they are written.
TEST(RecomputeModules, AreNamedInOneOrder) {
  RecomputeModules modules;
  modules.add(RecomputeModule::kNetwork);
  modules.add(RecomputeModule::kCoreAttention);
  EXPECT_EQ(to_text(modules), "core_attn,mlp");
  EXPECT_EQ(to_text(modules, " "), "core_attn mlp");
  EXPECT_EQ(find_modules("mlp,core_attn"), modules);
  EXPECT_TRUE(find_modules("mlp,unknown").empty());
  EXPECT_TRUE(find_modules("").empty());
}

TEST(ModuleSets, SaveLessMemoryTheMoreTimeTheyTake) {
  for (const char* model : {"llama3-8b", "deepseek-v3", "gpt-oss-120b"}) {
    double time = 0;
    Bytes freed = 0;
    for (const RecomputeModules& set : list_module_sets(on_devices(model))) {
      ModelOnDevices on = on_devices(model);
      on.parallel.recompute = Recompute::kSelective;
      on.parallel.modules = set;
      double set_time = 0;
      Bytes set_freed = 0;
      for (std::int64_t layer = 0; layer < on.model.layers; ++layer) {
        set_time += added_time(on, layer);
        set_freed += freed_bytes(on, layer);
      }
      EXPECT_GE(set_time, 0.999999 * time) << model << ": " << to_text(set);
      EXPECT_GT(set_freed, freed) << model << ": " << to_text(set);
      time = set_time;
      freed = set_freed;
    }
  }
}

// A network's products are the most of a layer's time, its inner tensors the most of its memory.
TEST(ModuleSets, BeginWithNormsAndEndWithAllModules) {
  const std::vector<RecomputeModules> sets = list_module_sets(on_devices("llama3-8b"));
  ASSERT_GE(sets.size(), 3u);
  EXPECT_EQ(to_text(sets.front()), "layernorm");
  EXPECT_EQ(to_text(sets.back()), "core_attn,layernorm,mlp");
  // The experts contain their activation function, and DeepSeek-V3 has dense layers, too.
  EXPECT_EQ(to_text(list_module_sets(on_devices("deepseek-v3")).back()),
            "core_attn,layernorm,mla_up_proj,mlp,moe");
}

}  // namespace
}  // namespace bubblescope::tests
