// The work that PyTorch's runtimes compute, copy and leave out, in closed form.
#include <gtest/gtest.h>

#include "sim/model/layer_timer.h"
#include "sim/model/runtime.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices in_pytorch(const char* model, const char* gpu) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find(model)->model;
  on.gpu = Registry<GpuDef>::instance().find(gpu)->gpu;
  on.parallel.sequence = on.model.sequence;
  on.parallel.pytorch = true;
  return on;
}

double recomputation(ModelOnDevices on, std::int64_t layer) {
  on.parallel.recompute = Recompute::kNone;
  const double kept = estimate_layer_times(on, layer).input_grad;
  on.parallel.recompute = Recompute::kFull;
  return estimate_layer_times(on, layer).input_grad - kept;
}

// Megatron-LM runs a whole forward again; PyTorch's checkpoint stops before the product whose
// output only the residual needs, and leaves out the residual: 3 numbers per token.
TEST(EarlyStop, LeavesOutTheLastProductAndTheResidual) {
  ModelOnDevices on = in_pytorch("llama3-8b", "h100");
  const double forward = estimate_layer_times(on, 0).forward;
  const LayerTimer timer(on);
  const double skipped =
      timer.gemm(8192, 14'336, 4096).forward + timer.moved(2.0 * 8192 * 3 * 4096);
  EXPECT_NEAR(recomputation(on, 0), forward - skipped, 1e-6 * forward);
  EXPECT_GT(skipped, 0.15 * forward);
  on.parallel.pytorch = false;
  EXPECT_NEAR(recomputation(on, 0), forward, 1e-6 * forward);
}

// The collective after the last product is half of the all-reduce around the network.
TEST(EarlyStop, LeavesOutTheLastCollective) {
  ModelOnDevices on = in_pytorch("llama3-70b", "h100");
  on.parallel.tensor = 8;
  on.assumptions.collective_sms = 0;
  const double one = recomputation(on, 0) - estimate_layer_times(on, 0).forward;
  on.assumptions.tensor_exposed = 0;
  const double none = recomputation(on, 0) - estimate_layer_times(on, 0).forward;
  on.assumptions.tensor_exposed = 1;
  const LayerTimer timer(on);
  EXPECT_NEAR(none - one, (timer.tensor_collectives(true) - timer.tensor_collectives(false)) / 2,
              10);
}

// Where the outputs of routed experts are weighed, their weights have gradients, so that those
// outputs are needed.
TEST(EarlyStop, KeepsLayersOfExpertsWhole) {
  const ModelOnDevices on = in_pytorch("qwen3-30b-a3b", "h100");
  const double forward = estimate_layer_times(on, 0).forward;
  EXPECT_NEAR(recomputation(on, 0), forward, 1e-6 * forward);
}

// Where tokens are weighed earlier, nothing needs the experts' last GEMM (of 16 experts of a rank,
// 4096 * 8 / 16 rows each), the combination, the way back of the permutation and the residual.
TEST(EarlyStop, LeavesOutTheCombinationOfTokensWeighedBefore) {
  ModelOnDevices on = in_pytorch("qwen3-30b-a3b", "h100");
  on.parallel.sequence = 4096;
  on.parallel.data = on.parallel.expert = 8;
  const double kept = recomputation(on, 0);
  on.assumptions.weighed_early = 1;
  const LayerTimer timer(on);
  EXPECT_NEAR(kept - recomputation(on, 0),
              timer.grouped_gemm(16, {GemmPass::kForward, 2048, 768, 2048}) +
                  (timer.expert_collectives() + timer.permutation()) / 2 +
                  timer.moved(2.0 * 4096 * 3 * 2048),
              1e-6 * kept);
}

// Two all-reduces of a layer are two gathers and two scatters, each with a copy of the gathered
// tensor, which is read and written; without sequence parallelism there is nothing to reorder.
TEST(SequenceCopies, ReadAndWriteEveryGatheredTensor) {
  ModelOnDevices on = in_pytorch("llama3-8b", "h100");
  on.parallel.tensor = 8;
  on.assumptions.collective_sms = 0;
  const double copied = LayerTimer(on).tensor_collectives(true);
  on.parallel.pytorch = false;
  const double ordered = LayerTimer(on).tensor_collectives(true);
  const double bytes = 2.0 * 8192 * 4096;
  EXPECT_NEAR(copied - ordered, LayerTimer(on).memory(4 * 2 * bytes), 2);
  on.parallel.sequence_parallel = false;
  const double without = LayerTimer(on).tensor_collectives(true);
  on.parallel.pytorch = true;
  EXPECT_EQ(LayerTimer(on).tensor_collectives(true), without);
}

TEST(ShardedData, CopiesTheGradientsOfEveryMicroBatch) {
  for (const auto& [name, bytes] : {std::pair{"fsdp", 8.0}, std::pair{"torchtitan", 14.0}}) {
    ModelOnDevices on = in_pytorch("llama3-8b", "h100");
    on.assumptions = Registry<RuntimeDef>::instance().find(name)->assumptions;
    EXPECT_DOUBLE_EQ(estimate_accumulation_time(on, 1e9), LayerTimer(on).memory(bytes * 1e9));
  }
}

// Per copy of a token gpt-oss clamps gate and input: 16 bytes per number of the activation in F, 20
// in I, beside 28 and 40 per number of the expert's output for the bias.
TEST(BiasedExperts, ClampWhatEntersTheirActivation) {
  ModelOnDevices on = in_pytorch("gpt-oss-120b", "h100");
  const PhaseTimes biased = estimate_layer_times(on, 0);
  on.model.experts->biased = false;
  const PhaseTimes plain = estimate_layer_times(on, 0);
  const double numbers = 4.0 * 4096 * 2880;
  EXPECT_NEAR(biased.forward - plain.forward, LayerTimer(on).moved((28 + 16) * numbers),
              1e-6 * biased.forward);
  EXPECT_NEAR(biased.input_grad - plain.input_grad, LayerTimer(on).moved((40 + 20) * numbers),
              1e-6 * biased.forward);
}

// Llama 3 8B has queries and keys of 4,096 and 1,024 numbers and an inner width of 14,336. A fused
// rotation reads and writes each once; PyTorch converts (1 + 2), multiplies (2 + 2) and converts
// back (2 + 1). Its gate writes the activation and reads it again, 2 numbers more in F and 4 in the
// backward. Without a gate there is neither.
TEST(EagerKernels, ConvertAndRotateAndMultiplyApart) {
  ModelOnDevices on = in_pytorch("llama3-8b", "h100");
  const PhaseTimes fused = estimate_layer_times(on, 0);
  on.assumptions.eager_kernels = 1;
  const PhaseTimes eager = estimate_layer_times(on, 0);
  const LayerTimer timer(on);
  const double rotation = 8 * (4096 + 1024);
  EXPECT_NEAR(eager.forward - fused.forward, timer.moved(2.0 * 8192 * (rotation + 2 * 14'336)), 1);
  EXPECT_NEAR(eager.input_grad - fused.input_grad,
              timer.moved(2.0 * 8192 * (rotation + 4 * 14'336)), 1);
  EXPECT_EQ(eager.weight_grad, fused.weight_grad);
  on.model.gated = false;
  const double plain = estimate_layer_times(on, 0).forward;
  on.assumptions.eager_kernels = 0;
  EXPECT_EQ(estimate_layer_times(on, 0).forward, plain);
}

// llama3-8b on 4 context ranks with 2,048 tokens each: 32 heads of 128 numbers. In F, kernels of
// the first step move 20 bytes per number, those of three more 46; in the backward 84 and 60.
TEST(RingAttention, MovesItsOutputsAndGradientsInEveryStep) {
  ModelOnDevices on = in_pytorch("llama3-8b", "h100");
  on.parallel.context = 4;
  const double numbers = 2048.0 * 32 * 128;
  EXPECT_EQ(LayerTimer(on).ring_forward(), 0);
  on.assumptions.context_ring = 1;
  const LayerTimer timer(on);
  EXPECT_NEAR(timer.ring_forward(), timer.moved((20 + 3 * 46) * numbers), 1);
  EXPECT_NEAR(timer.ring_backward(), timer.moved((84 + 3 * 60) * numbers), 1);
  on.parallel.context = 1;
  EXPECT_EQ(LayerTimer(on).ring_backward(), 0);
}

// The 8 heads of keys and values are repeated for 32 heads of queries; in the backward they are
// gathered again, and their gradients, of 32 instead of 16 bits, pass through all ranks.
TEST(RingAttention, ExchangesRepeatedHeadsAndLongGradients) {
  ModelOnDevices on = in_pytorch("llama3-8b", "h100");
  on.gpu.inside.latency = 0;
  on.parallel.context = 4;
  const double shared = LayerTimer(on).context_forward();
  EXPECT_EQ(LayerTimer(on).context_backward(), shared);
  // Half of a collective is hidden, which takes 20 of 132 SMs from the compute beside it.
  const double steps = (0.5 + 0.5 * 20 / 132) * 3 * static_cast<double>(kRingStepInside);
  on.assumptions.context_ring = 1;
  EXPECT_NEAR(LayerTimer(on).context_forward(), 4 * (shared - steps) + steps, 10);
  EXPECT_NEAR(LayerTimer(on).context_backward(), 3 * 4 * (shared - steps) + steps, 10);
}

}  // namespace
}  // namespace bubblescope::tests
