// The timing helpers of the GPU tests, on a device whose times are known.
#include "tests/support/gpu_speed.h"

#include <gtest/gtest.h>

#include "tests/support/fake_gpu.h"

namespace bubblescope::tests {
namespace {

// Four ranks have 32 multiprocessors each. A forward through the 32 x 96 matrix of queries, keys
// and values takes 8 rows x 32 x 96 multiplications of 16 ns, divided by 32.
TEST(GpuSpeed, TimesEveryProductOfABlock) {
  reset_fake_gpu(1).times.nanos_per_multiplication = 16;
  const auto speeds =
      time_gemms(fake_gpu_calls(), 4, {1, 32, 2, 61, 8, 1}, exec::Precision::kFloat32);
  ASSERT_EQ(speeds.size(), 12u);  // four weights, each forward and backward twice
  EXPECT_EQ(speeds[0].name, "qkv forward");
  EXPECT_EQ(speeds[0].in_stage, 8 * 32 * 96 * 16 / 32);
  for (const GemmSpeed& speed : speeds) {
    EXPECT_EQ(speed.in_stage, speed.plain) << speed.name;
    EXPECT_EQ(speed.in_stage, speed.with_sm_count) << speed.name;
  }
}

TEST(GpuSpeed, TimesEveryLayerThatIsAKernelOfOurs) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_entry = 16;
  const std::vector<LayerSpeed> speeds = time_layers(fake_gpu_calls(), {1, 64, 2, 61, 4, 1});
  ASSERT_EQ(speeds.size(), 7u);  // a copy, two norms, two softmaxes, attention of one head twice
  EXPECT_EQ(speeds[0].name, "copy");
  EXPECT_EQ(speeds[0].bytes, 2 * 2 * 16 * 4 * 64);  // read and written, in bfloat16
  EXPECT_EQ(speeds[3].name, "causal softmax");
  EXPECT_EQ(speeds[3].bytes, 1.5 * 2 * 64 * 4 * 4);
  // Four sequences of 4 positions: 16 x 4 x 64 multiplications per product, half of them masked.
  EXPECT_EQ(speeds[5].multiplications, 2 * 16 * 4 * 64 / 2);
  EXPECT_EQ(speeds[6].multiplications, 5 * 16 * 4 * 64 / 2);
  for (std::size_t layer = 1; layer < speeds.size(); ++layer)
    EXPECT_GT(speeds[layer].time, 0) << speeds[layer].name;
  EXPECT_EQ(gpu.handles, 0);
}

// Four ranks have 32 multiprocessors each. The GELU of 8 rows with width 128 takes 8 x 128 x 16 ns,
// divided by 32, and its gradient the same.
TEST(GpuSpeed, SeesWhatTheGeluTakesBehindItsProduct) {
  FakeGpu& gpu = reset_fake_gpu(1);
  gpu.times.nanos_per_multiplication = 16;
  gpu.times.nanos_per_entry = 16;
  const EpilogueSpeed speed = time_epilogues(fake_gpu_calls(), 4, {1, 32, 2, 61, 8, 1});
  EXPECT_EQ(speed.separate - speed.fused, 2 * 8 * 128 * 16 / 32);
  EXPECT_EQ(speed.fused, 2 * 8 * 32 * 128 * 16 / 32);
  EXPECT_EQ(speed.unknown, 0);
  gpu.knows_epilogues = false;
  const EpilogueSpeed without = time_epilogues(fake_gpu_calls(), 4, {1, 32, 2, 61, 8, 1});
  EXPECT_EQ(without.fused, without.separate);
  EXPECT_EQ(without.unknown, 2);
}

// On the simulated device events take no time, so a step of one rank takes as long as its kernels
// back to back.
TEST(GpuSpeed, AnExecutorThatAddsNothingIsSeenToAddNothing) {
  for (const bool graph : {false, true}) {
    FakeGpu& gpu = reset_fake_gpu(1);
    gpu.times.nanos_per_multiplication = 1;
    gpu.times.nanos_per_entry = 1;
    exec::TrainingOptions options;
    options.model = {1, 8, 2, 13, 4, 2};
    exec::DeviceOptions device;
    device.graph = graph;
    const ExecutorSpeed speed = time_executor(fake_gpu_calls(), options, device);
    EXPECT_GT(speed.step, 0);
    EXPECT_NEAR(static_cast<double>(speed.step), static_cast<double>(speed.back_to_back), 1);
    EXPECT_EQ(gpu.handles, 0);
  }
}

}  // namespace
}  // namespace bubblescope::tests
