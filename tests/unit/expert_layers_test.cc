// Models with experts in some of their layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/model/model_step.h"

namespace bubblescope::tests {
namespace {

const Transformer& preset(const char* name) {
  return Registry<ModelDef>::instance().find(name)->model;
}

// Maverick's layers 2, 4, ..., 48 have experts; DeepSeek-V3's from the fourth on.
TEST(ExpertLayers, AreCounted) {
  const Transformer& maverick = preset("llama4-maverick");
  EXPECT_EQ(count_expert_layers(maverick, 0, 48), 24);
  EXPECT_EQ(count_expert_layers(maverick, 1, 2), 1);
  EXPECT_FALSE(has_experts(maverick, 0));
  EXPECT_TRUE(has_experts(maverick, 47));
  EXPECT_EQ(count_expert_layers(preset("deepseek-v3"), 0, 61), 58);
  EXPECT_EQ(count_expert_layers(preset("deepseek-v3"), 2, 4), 1);
  EXPECT_EQ(count_expert_layers(preset("llama3-8b"), 0, 32), 0);
}

// Both stages between the ends have 6 layers with experts and 6 without.
TEST(ExpertLayers, AddUpWithDenseOnes) {
  ModelOnDevices on;
  on.model = preset("llama4-maverick");
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = on.model.sequence;
  on.parallel.layers_of_stage = {11, 12, 12, 13};
  Shape shape;
  shape.ranks = 4;
  const ModelStep step = compute_model_step(on, shape);
  EXPECT_EQ(step.costs.stages[1].forward, step.costs.stages[2].forward);
  EXPECT_EQ(step.activation_bytes[1].forward, step.activation_bytes[2].forward);
  on.model.experts.reset();
  const double dense = estimate_layer_times(on, 0).forward;
  on.model = preset("llama4-maverick");
  EXPECT_DOUBLE_EQ(estimate_layer_times(on, 0).forward, dense);
  EXPECT_GT(estimate_layer_times(on, 1).forward, dense);
}

// 128 experts on 8 ranks: with 1.792 ms of the host for a layer and 0.14 ms for each of 16 experts,
// at 14 us per launch, 288 kernels take 2 us each, in F and in I; one fused kernel leaves the 128
// of the router and the exchange.
TEST(ExpertLayers, HaveSmallKernelsThatOccupyTheDevice) {
  ModelOnDevices on;
  on.model = preset("qwen3-30b-a3b");
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = 4096;
  on.parallel.data = on.parallel.expert = 8;
  const auto times = [&] { return estimate_layer_times(on, 0); };
  const PhaseTimes before = times();
  on.assumptions.host_experts = 1'792'000;
  on.assumptions.host_expert = 140'000;
  EXPECT_NEAR(times().forward - before.forward, 2'000 * (128 + 16 * 10), 1);
  EXPECT_NEAR(times().input_grad - before.input_grad, 2'000 * (128 + 16 * 10), 1);
  on.assumptions.experts_fused = 1;
  const double fused = times().forward;
  on.assumptions.host_experts = on.assumptions.host_expert = 0;
  EXPECT_NEAR(fused - times().forward, 2'000 * 128, 1);
}

// Two data ranks cannot share experts by eights, so that each expert is on one of the tensor ranks.
TEST(ExpertLayers, SayOverHowManyTensorRanksAnExpertIs) {
  ModelOnDevices on;
  on.model = preset("mixtral-8x7b");
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.tensor = 4;
  on.parallel.data = on.parallel.expert = 2;
  const auto says = [&](const std::string& part) {
    const std::vector<std::string> lines = explain(on);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(part) != std::string::npos;
    });
  };
  EXPECT_TRUE(says("experts: ep 2, so that a rank has 4 of 8; etp 4, as tp, which is Megatron"));
  on.parallel.expert = 8;
  EXPECT_TRUE(says("a rank has 1 of 8; etp 1, because ep does not divide dp times cp (2)"));
  on.parallel.expert_tensor = 1;
  EXPECT_TRUE(says("etp 1, as given"));
  on.model = preset("llama3-8b");
  EXPECT_FALSE(says("experts: "));
}

}  // namespace
}  // namespace bubblescope::tests
