// Memory as PyTorch's FSDP, cross-entropy and pipelines hold it, and buffers of every runtime.
#include <gtest/gtest.h>

#include "sim/model/activation_bytes.h"
#include "sim/model/model_step.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices llama(bool pytorch) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = 8192;
  on.parallel.pytorch = pytorch;
  if (pytorch) on.parallel.logit_bytes = 14;
  return on;
}

Shape shape_of(std::int32_t ranks, std::int32_t microbatches) {
  Shape shape;
  shape.ranks = ranks;
  shape.microbatches = microbatches;
  return shape;
}

Bytes buffers(const ModelOnDevices& on, const Shape& shape, const RankLoad& load) {
  return RankBuffers(on, shape).count(load);
}

// Megatron: 4 bytes per logit, and the 16-bit inputs of the head and of its norm. PyTorch: 16-bit
// logits, and three tensors of 32 bits; with loss_parallel four, and the head's whole input.
TEST(PyTorchMemory, HoldsLogitsAsCrossEntropyDoes) {
  ModelOnDevices on = llama(false);
  const Bytes logits = Bytes{8192} * 128'256;
  const Bytes hidden = Bytes{8192} * 4096;
  EXPECT_EQ(estimate_head_memory(on.model, on.parallel).forward, 4 * logits + 4 * hidden);
  on = llama(true);
  EXPECT_EQ(estimate_head_memory(on.model, on.parallel).forward, 14 * logits + 4 * hidden);
  on.parallel.tensor = 8;
  EXPECT_EQ(estimate_head_memory(on.model, on.parallel).forward,
            18 * logits / 8 + 2 * hidden + 2 * hidden / 8);
}

// 16 bytes per parameter over 8 ranks: the 32-bit weight, its gradient and two moments. Others
// shard 16-bit weights as well.
TEST(PyTorchMemory, ShardsNo16BitWeights) {
  ModelOnDevices on = llama(true);
  on.parallel.zero_stage = 3;
  on.parallel.data = 8;
  const StageParameters parameters{8e9, 0};
  const StateBytes states = count_states(on.parallel, parameters);
  EXPECT_EQ(states.weights, 0);
  EXPECT_EQ(states.gradients + states.optimizer, 16'000'000'000);
  on.parallel.pytorch = false;
  EXPECT_EQ(count_states(on.parallel, parameters).weights, 2'000'000'000);
  on.parallel.pytorch = true;
  on.parallel.zero_stage = 1;  // a pipeline keeps weights gathered
  EXPECT_EQ(count_states(on.parallel, parameters).weights, 16'000'000'000);
}

// Every second product's output is saved; the inputs of both norms' products, keys, the inner
// tensor and its activation are recomputed: 2 x 4096 + 1024 + 2 x 14336 numbers per token.
TEST(Buffers, HoldWhatOneLayerRecomputes) {
  ModelOnDevices on = llama(true);
  on.parallel.recompute = Recompute::kSelective;
  const Shape one = shape_of(1, 1);
  const Bytes token = 2 * (2 * 4096 + 1024 + 2 * 14'336);
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 8192 * token);
  on.parallel.recompute = Recompute::kNone;
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 0);
}

// DeepSeek-V3 under Megatron, one after the other: the input of the up-projections (7168), queries
// and keys (128 x 192 each) and values (128 x 128); the activation of 9 networks (2048 each) is
// less.
TEST(Buffers, HoldTheLargerOfAttentionAndNetwork) {
  ModelOnDevices on = llama(false);
  on.model = Registry<ModelDef>::instance().find("deepseek-v3")->model;
  on.parallel.recompute = Recompute::kSelective;
  const Bytes token = 2 * (7168 + 2 * 128 * 192 + 128 * 128);
  EXPECT_EQ(buffers(on, shape_of(1, 1), {1, false, {1e9, 0}}), 8192 * token);
}

// The input of a product is gathered from 4 tensor ranks.
TEST(Buffers, HoldAGatheredInput) {
  ModelOnDevices on = llama(false);
  on.parallel.tensor = 4;
  const Shape one = shape_of(1, 1);
  EXPECT_EQ(buffers(on, one, {32, true, {2e9, 0}}), Bytes{2} * 8192 * 4096);
  on.parallel.sequence_parallel = false;
  EXPECT_EQ(buffers(on, one, {32, true, {2e9, 0}}), 0);
}

// 8 micro-batches, each with a buffer for activations and one for gradients. Megatron has two
// messages each way.
TEST(Buffers, OfPyTorchsPipelinesArePerMicrobatch) {
  const Shape shape = shape_of(4, 8);
  const Bytes message = Bytes{2} * 8192 * 4096;
  EXPECT_EQ(buffers(llama(true), shape, {8, true, {2e9, 0}}), 8 * 2 * message);
  EXPECT_EQ(buffers(llama(false), shape, {8, true, {2e9, 0}}), 4 * message);
}

// The layer at work and the next one, in 16 bits; in PyTorch also the head's group.
TEST(Buffers, HoldGatheredWeights) {
  ModelOnDevices on = llama(false);
  on.parallel.zero_stage = 3;
  const Shape one = shape_of(1, 1);
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 0);  // one copy has nothing to gather
  on.parallel.data = 8;
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 1'000'000'000);
  on.parallel.pytorch = true;  // the head stays gathered, and gradients are reduced from a copy
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}),
            1'000'000'000 + Bytes{2} * 128'256 * 4096 + 1'500'000'000);
}

// A layer's gradients in 16 bits and in 32.
TEST(Buffers, HoldTheGradientsThatFsdpReduces) {
  ModelOnDevices on = llama(true);
  on.parallel.data = 8;
  const Shape one = shape_of(1, 1);
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 1'500'000'000);
  on.parallel.data = 1;
  EXPECT_EQ(buffers(on, one, {32, true, {8e9, 0}}), 0);
}

}  // namespace
}  // namespace bubblescope::tests
