// Heads whose size kernels of attention do not take as it is.
#include "sim/model/head_alignment.h"

#include <gtest/gtest.h>

#include "sim/model/layer_timer.h"

namespace bubblescope::tests {
namespace {

/// Hidden size 13,824 of bigscience-workshop/bigscience, train/tr11-176B-ml/chronicles-prequel.md.
ModelOnDevices with_heads(std::int64_t heads, const char* device = "a100") {
  ModelOnDevices on;
  on.model.hidden = 13'824;
  on.model.heads = on.model.key_value_heads = heads;
  on.model.head_size = on.model.hidden / heads;
  on.model.feed_forward = 4 * on.model.hidden;
  on.model.dropout = true;
  on.gpu = Registry<GpuDef>::instance().find(device)->gpu;
  on.parallel.sequence = 2048;
  on.parallel.flash_attention = false;
  on.parallel.sequence_parallel = false;
  on.parallel.recompute = Recompute::kFull;
  return on;
}

double layer_time(const ModelOnDevices& on) {
  const PhaseTimes times = estimate_layer_times(on, 0);
  return times.forward + times.input_grad + times.weight_grad;
}

struct Pair {
  std::int32_t tensor;
  std::int32_t micro_batch_size;
  double aligned_s;     ///< of a step, with 96 heads of 144 numbers
  double unaligned_s;   ///< with 128 heads of 108
  double layers;        ///< of the largest stage
  double microbatches;  ///< and the ranks less 1, which wait for them
};

// 78 layers, 2,048 samples; 8 tensor ranks: 6 stages, 8 replicas; 4: 12 stages, of which the first
// 11 have 7 layers each. A layer's work on a micro-batch took longer by the difference over layers
// and micro-batches: 42 to 84 ms.
TEST(UnalignedHeads, CostWhatStepsOfBigscienceDiffer) {
  const Pair pairs[] = {{8, 4, 124.75, 162.72, 13, 64 + 5},
                        {8, 4, 118.12, 156.84, 13, 64 + 5},
                        {4, 2, 107.12, 147.41, 7, 128 + 11},
                        {4, 4, 110.31, 153.90, 7, 64 + 11}};
  for (const Pair& pair : pairs) {
    ModelOnDevices aligned = with_heads(96);
    ModelOnDevices unaligned = with_heads(128);
    for (ModelOnDevices* on : {&aligned, &unaligned}) {
      on->parallel.tensor = pair.tensor;
      on->parallel.micro_batch_size = pair.micro_batch_size;
    }
    const double measured = (pair.unaligned_s - pair.aligned_s) / pair.layers / pair.microbatches;
    const double computed = (layer_time(unaligned) - layer_time(aligned)) / 1e9;
    EXPECT_NEAR(computed / measured, 1, 0.06) << pair.tensor << ' ' << pair.micro_batch_size;
  }
}

TEST(AlignedHeads, CostAsMuchWhateverTheirSize) {
  // 64, 96 and 128 heads of 216, 144 and 108: the first two differ by their scores alone.
  EXPECT_NEAR(layer_time(with_heads(96)) / layer_time(with_heads(64)), 1, 0.05);
  EXPECT_GT(layer_time(with_heads(128)) / layer_time(with_heads(96)), 1.3);
}

TEST(FlashAttention, PadsHeadsAsItsKernelsAreBuilt) {
  // flash_api.cpp: up to 192 to a multiple of 32, above to 256.
  const std::int64_t sizes[][2] = {{64, 64},   {80, 96},   {104, 128}, {128, 128}, {132, 160},
                                   {192, 192}, {200, 256}, {256, 256}, {512, 512}};
  for (const auto& [size, padded] : sizes) EXPECT_EQ(pad_head(size), padded) << size;
}

TEST(FlashAttention, TakesAsLongForPaddedHeadsAsForFullOnes) {
  const auto core = [](std::int64_t size) {
    ModelOnDevices on = with_heads(96);
    on.parallel.flash_attention = true;
    on.model.head_size = size;
    return LayerTimer(on).core_forward();
  };
  EXPECT_NEAR(core(104) / core(128), 1, 1e-9);
  EXPECT_NEAR(core(136) / core(160), 1, 1e-9);
  EXPECT_LT(core(128), core(136));
}

/// The time of F's core with these heads over that with 32 heads of 128 numbers.
double core_ratio(const char* device, double second, std::int64_t heads, std::int64_t size) {
  ModelOnDevices on = with_heads(96, device);
  on.parallel.sequence = 4096;
  on.parallel.flash_attention = true;
  on.assumptions.flash_attention_2 = second;
  const auto core = [&on](std::int64_t count, std::int64_t numbers) {
    on.model.heads = on.model.key_value_heads = count;
    on.model.head_size = numbers;
    return LayerTimer(on).core_forward();
  };
  return core(heads, size) / core(32, 128);
}

// 64 heads of 64 numbers and 32 of 128 have the same FLOPs, and on an A100's 108 SMs 19.0 and 9.48
// blocks each: (9.48 / 11.78) / (18.96 / 21.26) = 0.902; an H100 has 132 SMs: (7.76 / 10.06) /
// (15.52 / 17.82) = 0.886. Heads of 64 reach (64 / 76) / (128 / 140) = 0.921 of the rate under
// flash attention 2, and (64 / 164) / (128 / 228) = 0.695 under later kernels. Larger ones gain
// nothing.
TEST(FlashAttention, LosesLessWithSmallHeadsInItsSecondVersion) {
  EXPECT_NEAR(core_ratio("a100", 0, 64, 64), 0.902 / 0.921, 1e-3);
  EXPECT_NEAR(core_ratio("h100", 1, 64, 64), 0.886 / 0.921, 1e-3);
  EXPECT_NEAR(core_ratio("h100", 0, 64, 64), 0.886 / 0.695, 1e-3);
  EXPECT_NEAR(core_ratio("h100", 0, 32, 256), 2, 1e-9);
}

// 539 and 335 TFLOP/s. On an H100 of 500 W, whose GEMMs sustain 541 instead of 640, attention is
// slower alike.
TEST(FlashAttention, IsFasterSinceHopperAndSlowerUnderAPowerLimit) {
  ModelOnDevices on = with_heads(108, "h100");
  on.parallel.flash_attention = true;
  const double later = LayerTimer(on).core_forward();
  on.gpu = Registry<GpuDef>::instance().find("h100-hbm2e")->gpu;
  EXPECT_NEAR(LayerTimer(on).core_forward() / later, 640.0 / 541, 1e-9);
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.assumptions.flash_attention_2 = 1;
  EXPECT_NEAR(LayerTimer(on).core_forward() / later, 1.6, 1e-9);
}

// An RTX 4090 has no later kernels: 151 TFLOP/s of 165 in F (apache/tvm, tl_doc/flash_perf.md),
// whatever the runtime prefers.
TEST(FlashAttention, IsTheBestThatWorkstationsHave) {
  for (const char* device : {"rtx-4090", "l40s", "a40", "rtx-pro-6000", "a100-pcie"}) {
    ModelOnDevices on = with_heads(108, device);
    on.parallel.flash_attention = true;
    const double best = LayerTimer(on).core_forward();
    on.assumptions.flash_attention_2 = 1;
    EXPECT_EQ(LayerTimer(on).core_forward(), best) << device;
  }
  ModelOnDevices on = with_heads(108, "rtx-4090");
  on.parallel.flash_attention = true;
  on.parallel.sequence = 16'384;
  on.parallel.micro_batch_size = 8;
  on.model.heads = on.model.key_value_heads = 32;
  on.model.head_size = 128;
  const double flops = 8 * 2.0 * 16'384 * 16'384 * 32 * 128;
  EXPECT_NEAR(flops / LayerTimer(on).core_forward() / 1e3, 151, 0.02 * 151);
}

// Heads of 128 numbers at 8,192 tokens: 362 TFLOP/s on B200 in F (tritonbench pull request 171).
TEST(FlashAttention, IsAsFastOnBlackwellAsOnHopperInItsSecondVersion) {
  ModelOnDevices on = with_heads(108, "b200");
  on.parallel.flash_attention = true;
  on.parallel.sequence = 8192;
  on.parallel.micro_batch_size = 8;
  on.model.heads = on.model.key_value_heads = 16;
  on.model.head_size = 128;
  on.assumptions.causal = false;
  on.assumptions.flash_attention_2 = 1;
  const double flops = 8 * 4.0 * 8192 * 8192 * 16 * 128;
  EXPECT_NEAR(flops / LayerTimer(on).core_forward() / 1e3, 362, 0.06 * 362);
}

// Causal, 8,192 tokens, heads of 128 numbers: 1,418 TFLOP/s in F and 1,118 to 1,209 in the backward
// (Dao-AILab/flash-attention pull request 2280).
TEST(FlashAttention, IsFasterInItsFourthVersionOnBlackwell) {
  ModelOnDevices on = with_heads(108, "b200");
  on.parallel.flash_attention = true;
  on.parallel.sequence = 8192;
  on.parallel.micro_batch_size = 4;
  on.model.heads = on.model.key_value_heads = 16;
  on.model.head_size = 128;
  const double flops = 4 * 2.0 * 8192 * 8192 * 16 * 128;
  on.assumptions.flash_attention_4 = 1;
  EXPECT_NEAR(flops / LayerTimer(on).core_forward() / 1e3, 1418, 0.02 * 1418);
  EXPECT_NEAR(2.5 * flops / LayerTimer(on).core_backward() / 1e3, 1164, 0.03 * 1164);
  on.assumptions.flash_attention_2 = 1;  // which has no later kernels
  EXPECT_NEAR(flops / LayerTimer(on).core_forward() / 1e3, 362, 0.1 * 362);
}

// Causal, 8 sequences, 64 heads of 128 numbers; ROCm/aiter, op_tests/cpp/mha/README.md.
TEST(FlashAttention, IsAsFastOnAmdsDevicesAsAiterMeasured) {
  struct Row {
    const char* device;
    std::int64_t sequence;
    double forward, backward;  // TFLOP/s
  };
  for (const Row& row : {Row{"mi300x", 4096, 509.3, 402.2}, Row{"mi300x", 8192, 550.7, 432.7},
                         Row{"mi355x", 4096, 1190.3, 972.3}, Row{"mi355x", 8192, 1312, 1067.9}}) {
    ModelOnDevices on = with_heads(108, row.device);
    on.parallel.flash_attention = true;
    on.parallel.sequence = row.sequence;
    on.parallel.micro_batch_size = 8;
    on.model.heads = on.model.key_value_heads = 64;
    on.model.head_size = 128;
    const auto length = static_cast<double>(row.sequence);
    const double flops = 8 * 2.0 * length * length * 64 * 128;
    EXPECT_NEAR(flops / LayerTimer(on).core_forward() / 1e3, row.forward, 0.1 * row.forward);
    EXPECT_NEAR(2.5 * flops / LayerTimer(on).core_backward() / 1e3, row.backward,
                0.1 * row.backward);
  }
}

TEST(FlashAttention, TakesUnalignedHeadsInPyTorchAlone) {
  EXPECT_TRUE(can_fuse_attention(with_heads(96).model, false));
  EXPECT_FALSE(can_fuse_attention(with_heads(128).model, false));
  EXPECT_TRUE(can_fuse_attention(with_heads(128).model, true));
}

TEST(HeadNotes, NameFasterSizes) {
  EXPECT_EQ(describe_heads(with_heads(96)), "");
  EXPECT_EQ(describe_heads(with_heads(128)),
            "heads of 108 numbers do not align to 8: attention saves its scores, and computes them "
            "at 3.4 % of the peak; heads of 96 or 112 would be faster");
  ModelOnDevices fused = with_heads(128);
  fused.parallel.flash_attention = true;
  EXPECT_EQ(describe_heads(fused),
            "fused attention computes heads of 108 numbers as if they had 128");
  fused.model.head_size = 120;
  EXPECT_EQ(describe_heads(fused), "");
}

}  // namespace
}  // namespace bubblescope::tests
