// Runtimes, precisions and assumptions by name.
#include "sim/model/runtime.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "sim/model/activation_bytes.h"
#include "sim/model/model_step.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const char* model, const char* gpu) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find(gpu)->gpu;
  on.parallel.sequence = on.model.sequence;
  return on;
}

// Two passes of a host that takes longer than the device: F takes its time, and F and the backward
// of two layers take what the host needs; a fast host changes nothing.
TEST(HostLimit, IsTheLongerOfHostAndDevice) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  const PhaseTimes device{100, 100, 50};
  EXPECT_EQ(apply_host_limit(on, device, {2}).forward, 100);
  on.assumptions.host_layer = 90;
  on.assumptions.host_pass = 20;
  const PhaseTimes limited = apply_host_limit(on, device, {2});
  EXPECT_EQ(limited.forward, 200);
  EXPECT_EQ(limited.input_grad + limited.weight_grad, 200);
  on.parallel.tensor = 4;  // two doublings
  on.assumptions.host_tensor = 5;
  EXPECT_EQ(apply_host_limit(on, device, {2}).forward, 220);
  on.parallel.recompute = Recompute::kFull;
  const PhaseTimes recomputed = apply_host_limit(on, device, {2});
  EXPECT_EQ(recomputed.input_grad + recomputed.weight_grad, 440);
}

// CUDA_LAUNCH_BLOCKING=1: 100 of the device and 2 x 90 + 20 of the host, in F and in the backward.
TEST(HostLimit, IsTheSumWhereTheHostWaitsForEveryKernel) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.assumptions.host_layer = 90;
  on.assumptions.host_pass = 20;
  assume(on, "launch_blocking", 1);
  const PhaseTimes added = apply_host_limit(on, {100, 60, 40}, {2});
  EXPECT_EQ(added.forward, 300);
  EXPECT_EQ(added.input_grad + added.weight_grad, 300);
}

TEST(HostLimit, IsNoneWhereWholeIterationsAreGraphs) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.assumptions.host_layer = 90;
  on.assumptions.host_pass = 20;
  assume(on, "iteration_graphs", 1);
  const PhaseTimes limited = apply_host_limit(on, {100, 60, 40}, {2});
  EXPECT_EQ(limited.forward, 100);
  EXPECT_EQ(limited.input_grad, 60);
}

TEST(MatrixTypes, In8BitsAreFasterInProductsAlone) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  const PhaseTimes in16 = estimate_layer_times(on, 0);
  const PhaseTimes head = estimate_head_times(on);
  on.matrices = MatrixType::kFp8;
  const PhaseTimes in8 = estimate_layer_times(on, 0);
  EXPECT_LT(in8.weight_grad, 0.65 * in16.weight_grad);
  EXPECT_GT(in8.weight_grad, in16.weight_grad / on.gpu.kernels.fp8_gain);
  EXPECT_LT(in8.forward, in16.forward);
  EXPECT_EQ(estimate_head_times(on).forward, head.forward);
}

// --explain says that every name in brackets can be replaced, so it has to have them all.
TEST(Assumptions, AreAllExplained) {
  ModelOnDevices on = on_devices("deepseek-v3", "h100");
  on.matrices = MatrixType::kFp8;
  std::string text;
  for (const std::string& line : explain(on)) text += line + "\n";
  for (const std::string& name : list_assumptions())
    EXPECT_NE(text.find(name), std::string::npos) << name;
}

TEST(Assumptions, AreSetByNameAndRefuseOthers) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  assume(on, "host_layer_us", 250);
  EXPECT_EQ(on.assumptions.host_layer, 250'000);
  assume(on, "sustained_teraflops", 500);
  EXPECT_EQ(on.gpu.sustained_flops(), 500e12);
  EXPECT_TRUE(fails_with(
      [&] { assume(on, "host_layers_us", 250); },
      "no assumption is called 'host_layers_us'; did you mean 'host_layer_us'?; there are "
      "memory_efficiency, "));
  EXPECT_EQ(error_of([&] { assume(on, "fp8_gain", -1); }),
            "`assume` fp8_gain: give a number of 0 or more");
  EXPECT_EQ(error_of([&] { assume(on, "sustained_teraflops", 990); }),
            "`assume` sustained_teraflops: 990 is more than the device's peak; give at most 989")
      << "the peak is 989";
  EXPECT_EQ(error_of([&] { assume(on, "attention_forward", 1.1); }),
            "`assume` attention_forward: it is a fraction of the device's peak; give 0 to 1");
  EXPECT_EQ(error_of([&] { assume(on, "attention_backward", 20); }),
            "`assume` attention_backward: it is a fraction of the device's peak; give 0 to 1");
}

// Cast to 32 bits 6 bytes per logit, maximum 4, its subtraction 8, exponentials 8, sum 4, division
// 8; backward: scaling 8, cast 6. The recipes of NeMo fuse the loss.
TEST(Losses, OfMegatronAreSeparateKernelsWhereNothingFusesThem) {
  const auto& runtimes = Registry<RuntimeDef>::instance();
  for (const char* name : {"megatron", "megatron-2021", "deepspeed"}) {
    EXPECT_EQ(runtimes.find(name)->assumptions.loss_forward_bytes, 38) << name;
    EXPECT_EQ(runtimes.find(name)->assumptions.loss_backward_bytes, 14) << name;
  }
  EXPECT_EQ(runtimes.find("nemo")->assumptions.loss_forward_bytes, 16);
}

// Compiled, the loss moves four bytes per logit in F and four in the backward, at 67 % of an H100's
// 3.35 TB/s.
TEST(Losses, OfCompiledKernelsMoveEightBytesPerLogit) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.assumptions = Registry<RuntimeDef>::instance().find("torchtitan")->assumptions;
  const PhaseTimes head = estimate_head_times(on);
  on.assumptions.loss_forward_bytes = 0;
  on.assumptions.loss_backward_bytes = 0;
  const PhaseTimes gemms = estimate_head_times(on);
  const auto logits = static_cast<double>(on.parallel.micro_batch_size * on.parallel.sequence *
                                          on.model.vocabulary);
  const double moved = 4 * logits / (0.67 * 3.35e12) * 1e9;
  EXPECT_NEAR(head.forward - gemms.forward, moved, 1);
  EXPECT_NEAR(head.input_grad - gemms.input_grad, moved, 1);
}

// Per token and layer of DeepSeek-V3: the inputs of two norms (2 x 7168 numbers of 2 bytes),
// latents (2112 of 2), a sum per head (128 of 4); in 8 bits the output projection's input (16384),
// the input of 9 experts (7168 each), and gates and inner values (9 x 2048 each).
TEST(SavedActivations, OfDeepSeeksSelectiveRecomputationAreInBytes) {
  ModelOnDevices on = on_devices("deepseek-v3", "h800");
  on.parallel.recompute = Recompute::kSelective;
  on.parallel.fp8_inputs = true;
  const Bytes token = 4 * 7168 + 2 * 2112 + 4 * 128 + 16'384 + 9 * 7168 + 2 * 9 * 2048;
  EXPECT_EQ(estimate_layer_memory(on.model, on.parallel, 60).forward, 4096 * token);
}

// For Llama 3 8B torchtitan saves, in 16 bits: the inputs of two norms, queries, values, the gate
// and the core's output with its 32-bit sums.
TEST(SavedActivations, OfEverySecondProductAreHalf) {
  ModelOnDevices on = on_devices("llama3-8b", "h100");
  on.parallel.recompute = Recompute::kSelective;
  on.parallel.pytorch = true;
  const Bytes token = 2 * (4 * 4096 + 1024 + 14'336) + 4 * 32;
  EXPECT_EQ(estimate_layer_memory(on.model, on.parallel, 0).forward, on.parallel.tokens() * token);
}

// PyTorch prefers cuDNN's attention on Blackwell, since 2.11 on Hopper, and on Ampere never.
TEST(Runtimes, KnowTheAttentionOfPyTorchsReleases) {
  const auto flash_2 = [](const char* runtime, const char* gpu) {
    return assumptions_on(*Registry<RuntimeDef>::instance().find(runtime),
                          Registry<GpuDef>::instance().find(gpu)->gpu)
        .flash_attention_2;
  };
  for (const char* runtime : {"fsdp", "torchtitan"}) {
    const std::string later = std::string(runtime) + "-2.11";
    EXPECT_EQ(flash_2(runtime, "h100"), 1) << runtime;
    EXPECT_EQ(flash_2(later.c_str(), "h100"), 0) << runtime;
    EXPECT_EQ(flash_2(later.c_str(), "a100"), 1) << runtime;
    EXPECT_EQ(flash_2(runtime, "b200"), 0) << runtime;
  }
}

// Llama 3 8B in 8 bits on 8 devices, with the same layout under one release
// (NVIDIA-NeMo/Megatron-Bridge, performance summaries of 25.11 and 25.09): 4.28 and 4.16 s, 4.44
// and 4.40 s, 4.37 and 4.18 s on B200 and GB200.
TEST(Gemms, TakeAsLongOnB200AndB300AsOnTheirSuperchipsIn8Bits) {
  const auto rate_in_8_bits = [](const char* device) {
    const Gpu& gpu = Registry<GpuDef>::instance().find(device)->gpu;
    return gpu.sustained_flops() * gpu.kernels.fp8_gain;
  };
  EXPECT_NEAR(rate_in_8_bits("b200") / rate_in_8_bits("gb200"), 1, 1e-9);
  EXPECT_NEAR(rate_in_8_bits("b300") / rate_in_8_bits("gb300"), 1, 1e-9);
}

// At the 1248 TFLOP/s that its power limit would say, runs of two publishers were predicted 12 and
// 10 % too long in the median (whitecircle/halo, PrimeIntellect-ai/prime-rl).
TEST(Gemms, TakeAsLongOnB300AsOnItsSuperchipIn16Bits) {
  const auto rate_of = [](const char* device) {
    return Registry<GpuDef>::instance().find(device)->gpu.sustained_flops();
  };
  EXPECT_EQ(rate_of("b300"), rate_of("gb300"));
}

// 8 copies of a token, of 2048 numbers, at 67 % of 8 TB/s; twice as much in the backward.
TEST(Routing, MovesItsBytesForEveryExpertOfAToken) {
  ModelOnDevices on = on_devices("qwen3-30b-a3b", "b200");
  const PhaseTimes without = estimate_layer_times(on, 0);
  assume(on, "routing_bytes", 16);
  const PhaseTimes with = estimate_layer_times(on, 0);
  const double moved = 16.0 * 8 * 2048 * static_cast<double>(on.parallel.tokens());
  EXPECT_NEAR(with.forward - without.forward, moved / (0.67 * 8e12) * 1e9, 1);
  EXPECT_NEAR(with.input_grad - without.input_grad, 2 * moved / (0.67 * 8e12) * 1e9, 1);
}

// Norms of queries and keys read and write each number in F, read two and write one in I, and save
// their inputs. A rank of two has half of the heads.
TEST(QueryKeyNorms, MoveAndSaveQueriesAndKeys) {
  ModelOnDevices on = on_devices("qwen3-8b", "h100");
  on.parallel.tensor = 2;
  ASSERT_TRUE(on.model.query_key_norms);
  const PhaseTimes with = estimate_layer_times(on, 0);
  const Bytes saved = estimate_layer_memory(on.model, on.parallel, 0).forward;
  on.model.query_key_norms = false;
  const PhaseTimes without = estimate_layer_times(on, 0);
  const double numbers = (4096 + 1024) / 2.0 * static_cast<double>(on.parallel.tokens());
  const double rate = 0.67 * on.gpu.memory_bytes_per_second;
  EXPECT_NEAR(with.forward - without.forward, 2 * 2 * numbers / rate * 1e9, 1);
  EXPECT_NEAR(with.input_grad - without.input_grad, 3 * 2 * numbers / rate * 1e9, 1);
  EXPECT_EQ(saved - estimate_layer_memory(on.model, on.parallel, 0).forward,
            std::llround(2 * numbers));
}

}  // namespace
}  // namespace bubblescope::tests
