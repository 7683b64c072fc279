// Weights, gradients and moments of fewer bits than 32.
#include <gtest/gtest.h>

#include "sim/model/model_step.h"
#include "sim/model/runtime.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices llama(Gradients gradients) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = Registry<GpuDef>::instance().find("h200")->gpu;
  on.parallel.gradients = gradients;
  return on;
}

std::string explained(const ModelOnDevices& on) {
  std::string text;
  for (const std::string& line : explain(on)) text += line + "\n";
  return text;
}

// torch.optim.AdamW keeps moments in the precision of the weights: 2 bytes each of weight,
// gradient and two moments, all of which FSDP shards over 8 ranks.
TEST(PureStates, HaveEightBytesPerParameter) {
  ModelOnDevices on = llama(Gradients::kPure);
  on.parallel.pytorch = true;
  on.parallel.zero_stage = 3;
  on.parallel.data = 8;
  const StateBytes states = count_states(on.parallel, {8e9, 0});
  EXPECT_EQ(states.weights, 2'000'000'000);
  EXPECT_EQ(states.gradients, 2'000'000'000);
  EXPECT_EQ(states.optimizer, 4'000'000'000);
  EXPECT_NE(explained(on).find("states: 2 bytes of weight, 2 of gradient, 4 of Adam"),
            std::string::npos);
}

// A layer's gradients and the buffer of 16 bits that they are reduced in; otherwise it has 32.
TEST(PureStates, AreReducedIn16Bits) {
  const auto buffers = [](Gradients gradients) {
    ModelOnDevices on = llama(gradients);
    on.parallel.pytorch = true;
    on.parallel.data = 8;
    Shape shape;
    shape.ranks = 1;
    return RankBuffers(on, shape).count({32, false, {8e9, 0}});
  };
  EXPECT_EQ(buffers(Gradients::kFp32) - buffers(Gradients::kPure), 2 * 250'000'000);
}

// Adam reads weight, gradient and moments (8 bytes) and writes weight and moments (6); the norm
// reads 2, clipping reads and writes 2, and 2 are cleared. With 32 bits these are 46.
TEST(PureStates, AreUpdatedWithFewerBytes) {
  const auto update = [](Gradients gradients) {
    return static_cast<double>(estimate_update_cost(llama(gradients), {1e9, 0}, {}, {1}).optimizer);
  };
  EXPECT_NEAR(update(Gradients::kPure), 22e9 / (0.9 * 4.8e12) * 1e9, 1);
  EXPECT_NEAR(update(Gradients::kBf16), 46e9 / (0.9 * 4.8e12) * 1e9, 1);
  EXPECT_NE(
      explained(llama(Gradients::kPure))
          .find("update: 22 bytes per parameter: Adam 14, the norm 2, clipping 4, clearing 2"),
      std::string::npos);
}

// arXiv 2412.19437, section 3.3.2: both moments in 16 bits, master weights and gradients in 32.
TEST(Moments, OfDeepSeekHave16Bits) {
  ModelOnDevices on = llama(Gradients::kFp32);
  assume(on, "moment_bytes", 2);
  EXPECT_EQ(count_state_bytes(on.parallel).optimizer, 8);
  EXPECT_EQ(count_state_bytes(on.parallel).gradient, 4);
  EXPECT_EQ(count_update_bytes(on.parallel).adam, 16 + 14 - 8);
  on.parallel.gradients = Gradients::kLean;
  EXPECT_EQ(count_state_bytes(on.parallel).optimizer, 6);
  on.parallel.gradients = Gradients::kPure;
  EXPECT_EQ(count_state_bytes(on.parallel).optimizer, 4);
  assume(on, "moment_bytes", 1);
  EXPECT_EQ(count_state_bytes(on.parallel).optimizer, 2);
  EXPECT_EQ(error_of([&] { assume(on, "moment_bytes", 3); }),
            "`assume` moment_bytes: a moment has 4, 2 or 1 bytes, not 3");
}

}  // namespace
}  // namespace bubblescope::tests
