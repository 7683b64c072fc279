// Dispatch of tokens to experts, their permutation, and grouped GEMMs against measured ones.
#include "sim/model/expert_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/ir/range.h"
#include "sim/model/layer_timer.h"
#include "sim/model/runtime.h"

namespace bubblescope::tests {
namespace {

const Gpu& gpu(const char* name) { return Registry<GpuDef>::instance().find(name)->gpu; }

ModelOnDevices on_devices(const char* model, const char* device) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = gpu(device);
  on.parallel.sequence = 4096;
  return on;
}

// All-to-alls inside a node reach 0.60 of the stated rate where messages reach 0.836.
Link inside(const Gpu& device) {
  return {device.inside.latency, 0.60 / 0.836 * device.inside.bytes_per_second};
}

// Two draws out of two places are the same one in half of all cases; of 8 copies among 2 nodes all
// but 1/2^8 of the tokens visit a node.
TEST(Distinct, CountsPlacesOnce) {
  EXPECT_DOUBLE_EQ(estimate_distinct(2, 1), 1);
  EXPECT_DOUBLE_EQ(estimate_distinct(2, 2), 1.5);
  EXPECT_DOUBLE_EQ(estimate_distinct(2, 8), 2 * (1 - 1.0 / 256));
  EXPECT_DOUBLE_EQ(estimate_distinct(1, 5), 1);
}

// An all-to-all over 16 ranks in nodes of 8: 7 of 16 parts stay in the node, 8 of 16 leave it.
TEST(ExchangeTime, OfAnAllToAllCarriesEveryCopy) {
  const Gpu& device = gpu("h100");
  const double bytes = 1e9;
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 1, 0}, 8, 1),
            inside(device).time(bytes * 7 / 8));
  for (const std::int64_t copies : {1, 8}) {
    const double all = bytes * static_cast<double>(copies);
    EXPECT_EQ(estimate_exchange_time(device, {bytes, copies, 0}, 16, 1),
              std::max(device.outside.time(all / 2), inside(device).time(all * 7 / 16)));
  }
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 1, 0}, 4, 8),
            device.outside.time(bytes * 3 / 4));
}

// A token visits a node once, and there every rank once; all but the 1/16 that stays is copied.
TEST(ExchangeTime, OfADispatchVisitsNodesAndRanksOnce) {
  const Gpu& device = gpu("h100");
  const double bytes = 1e9;
  const double ranks = 16 * (1 - std::pow(15.0 / 16, 8));
  const double nodes = 2 * (1 - 1.0 / 256);
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 8, 0, true}, 16, 1),
            std::max(device.outside.time(bytes * nodes / 2),
                     inside(device).time(bytes * ranks * 15 / 16)));
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 8, 1, true}, 16, 1),
            std::max(device.outside.time(bytes / 2), inside(device).time(bytes * ranks * 15 / 16)));
  EXPECT_LT(estimate_exchange_time(device, {bytes, 8, 0, true}, 8, 1),
            estimate_exchange_time(device, {bytes, 8, 0}, 8, 1));
}

// A router that assigns tokens to consecutive experts sends each to one rank, of one node.
TEST(ExchangeTime, OfADispatchKnowsOnHowManyRanksAnExpertsTokenIs) {
  const Gpu& device = gpu("h100");
  const double bytes = 1e9;
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 8, 0, true, 1}, 8, 1),
            inside(device).time(bytes * 7 / 8));
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 8, 0, true, 1}, 16, 1),
            std::max(device.outside.time(bytes / 2), inside(device).time(bytes * 15 / 16)));
  EXPECT_EQ(estimate_exchange_time(device, {bytes, 8, 0, false, 1}, 8, 1),
            estimate_exchange_time(device, {bytes, 8, 0}, 8, 1));
}

// The domain carries no more than all copies, whose kernels it runs anyway: with 32 ranks in one of
// 32, 31/32 of them, as in two of 16.
TEST(ExchangeTime, IsNotLongerInALargerDomain) {
  for (const bool once : {false, true})
    for (const std::int64_t max_nodes : {0, 1, 4}) {
      Gpu device = gpu("gb200");
      Nanos smaller = kMaxNanos;
      for (device.per_node = 1; device.per_node <= 64; device.per_node *= 2) {
        const Nanos time = estimate_exchange_time(device, {1e9, 8, max_nodes, once}, 32, 1);
        EXPECT_LE(time, smaller) << device.per_node << (once ? " once" : "");
        smaller = time;
      }
    }
}

// DeepSeek-V3 limits a token to 4 groups of experts; Qwen3 does not.
TEST(Dispatches, OnceWhereGroupsAreLimitedOrTheRuntimeDoes) {
  EXPECT_TRUE(dispatches_once(on_devices("deepseek-v3", "h100")));
  ModelOnDevices on = on_devices("qwen3-235b-a22b", "h100");
  EXPECT_FALSE(dispatches_once(on));
  on.assumptions.dispatch_once = 1;
  EXPECT_TRUE(dispatches_once(on));
}

// NCCL's all-to-all sends every copy of a token, whatever groups its router is limited to.
TEST(Dispatches, EveryCopyWhereAJobChoosesSo) {
  ModelOnDevices on = on_devices("deepseek-v3", "h100");
  assume(on, "dispatch_once", 0);
  EXPECT_FALSE(dispatches_once(on));
  assume(on, "dispatch_once", 1);
  EXPECT_TRUE(dispatches_once(on));
}

// 8 copies of 4096 numbers. On one rank: read 1, write 8, and back. All-to-all: 8 read and 8
// written twice more. Dispatched once over 16 ranks, 6.45 of which are different.
TEST(Permutation, CountsWhatEachDispatcherMoves) {
  ModelOnDevices on = on_devices("qwen3-235b-a22b", "h100");
  EXPECT_DOUBLE_EQ(count_permuted(on), 18 * 4096);
  on.parallel.expert = 16;
  EXPECT_DOUBLE_EQ(count_permuted(on), 50 * 4096);
  on.assumptions.dispatch_once = 1;
  EXPECT_NEAR(count_permuted(on), 2 * (8 + 6.453) * 4096, 10);
  assume(on, "ranks_per_token", 1);
  EXPECT_DOUBLE_EQ(count_permuted(on), 2 * (8 + 1) * 4096);
}

struct Grouped {
  double experts, rows, inputs, outputs;
  GemmPass pass;
  Gradients gradients;
  double teraflops;  ///< measured
};

// SimuMax (Apache-2.0), b200_bf16_ceperm.json, group_matmul: F and W with gradients of 4 and of 2
// bytes, at few, some and many rows per expert.
TEST(GroupedGemms, TakeAsLongAsMeasuredOnB200) {
  const std::vector<Grouped> measured{
      {32, 1024, 7168, 4096, GemmPass::kForward, Gradients::kFp32, 1030},
      {32, 1024, 7168, 4096, GemmPass::kWeightGrad, Gradients::kFp32, 650},
      {32, 1024, 7168, 4096, GemmPass::kWeightGrad, Gradients::kBf16, 781},
      {256, 128, 7168, 4096, GemmPass::kWeightGrad, Gradients::kFp32, 174},
      {256, 128, 7168, 4096, GemmPass::kWeightGrad, Gradients::kBf16, 319},
      {64, 512, 2048, 7168, GemmPass::kWeightGrad, Gradients::kFp32, 483},
      {40, 9832, 5120, 3072, GemmPass::kForward, Gradients::kFp32, 1068},
  };
  ModelOnDevices on = on_devices("deepseek-v3", "b200");
  for (const Grouped& grouped : measured) {
    on.parallel.gradients = grouped.gradients;
    const double time = LayerTimer(on).grouped_gemm(
        grouped.experts, {grouped.pass, grouped.rows, grouped.inputs, grouped.outputs});
    const double flops = 2 * grouped.experts * grouped.rows * grouped.inputs * grouped.outputs;
    EXPECT_NEAR(flops / time / 1e3, grouped.teraflops, 0.12 * grouped.teraflops)
        << grouped.rows << " rows";
  }
}

// gpt-oss: 4 copies of 2880 numbers per token; 28 bytes in F, 40 in I.
TEST(ExpertBiases, AreKernelsOfTheirOwn) {
  const ModelOnDevices on = on_devices("gpt-oss-120b", "h100");
  const LayerTimer timer(on);
  EXPECT_DOUBLE_EQ(timer.expert_biases(28, 2880), timer.moved(28.0 * 4096 * 4 * 2880));
  EXPECT_EQ(LayerTimer(on_devices("qwen3-235b-a22b", "h100")).expert_biases(28, 4096), 0);
}

// gpt-oss: 18 of 36 layers see 128 of 4096 tokens, 2/32 - 1/1024 of the causal scores. A window
// that is longer than the sequence changes nothing.
TEST(AttendedShare, IsThatOfWindowsAndWholeSequences) {
  const Transformer& model = Registry<ModelDef>::instance().find("gpt-oss-120b")->model;
  EXPECT_DOUBLE_EQ(estimate_attended_share(model, 4096), 0.5 + 0.5 * (2.0 / 32 - 1.0 / 1024));
  EXPECT_DOUBLE_EQ(estimate_attended_share(model, 100), 1);
  const Transformer& gemma = Registry<ModelDef>::instance().find("gemma3-27b")->model;
  EXPECT_EQ(gemma.local_layers, 52);  // all but 10 of 62
  EXPECT_EQ(estimate_attended_share(Registry<ModelDef>::instance().find("llama3-8b")->model, 8192),
            1);
}

}  // namespace
}  // namespace bubblescope::tests
