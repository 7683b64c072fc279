// Measures stages on a GPU against its libraries alone. Prints each figure, for reports.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/gpu_speed.h"
#include "tests/support/real_gpu.h"

namespace bubblescope::tests {
namespace {

/// Large enough to fill a partition and small enough to take a minute; rehearsals use less.
exec::TransformerShape measured_model() {
  const char* const asked = std::getenv("BUBBLESCOPE_SPEED_WIDTH");
  exec::TransformerShape model;
  model.width = asked != nullptr ? std::stoi(asked) : 2048;
  model.sequence = model.width;
  model.vocabulary = model.width;
  model.heads = 16;
  return model;
}

void print_figure(const std::string& name, double value) {
  std::printf("figure: %s: %.2f\n", name.c_str(), value);
}

class GpuSpeed : public testing::TestWithParam<int> {};

TEST_P(GpuSpeed, ProductsOfAStageReachFourFifthsOfPlainOnes) {
  REQUIRE_GPU();
  const int ranks = GetParam();
  double in_stage = 0;
  double plain = 0;
  double with_sm_count = 0;
  double work = 0;
  const std::string of = " of " + std::to_string(ranks) + " ranks";
  for (const GemmSpeed& gemm :
       time_gemms(*find_real_gpu(), ranks, measured_model(), exec::Precision::kBfloat16)) {
    in_stage += static_cast<double>(gemm.in_stage);
    plain += static_cast<double>(gemm.plain);
    with_sm_count += static_cast<double>(gemm.with_sm_count);
    work += 2 * gemm.multiplications;
    print_figure(gemm.name + of + ", % of plain cuBLAS",
                 100 * static_cast<double>(gemm.plain) / static_cast<double>(gemm.in_stage));
  }
  print_figure("all GEMMs" + of + ", Tflop/s", work / in_stage / 1000);
  print_figure("all GEMMs" + of + ", % of plain cuBLAS", 100 * plain / in_stage);
  print_figure("all GEMMs" + of + ", with their number of multiprocessors, % of plain cuBLAS",
               100 * plain / with_sm_count);
  EXPECT_GE(plain / in_stage, 0.8);
}

INSTANTIATE_TEST_SUITE_P(Ranks, GpuSpeed, testing::Values(1, 4, 8));

TEST(GpuSpeedOfLayers, NormsAndSoftmaxReachSevenTenthsOfTheCopysBandwidth) {
  REQUIRE_GPU();
  const std::vector<LayerSpeed> speeds = time_layers(*find_real_gpu(), measured_model());
  const double copied = speeds.at(0).bytes / static_cast<double>(speeds.at(0).time);
  print_figure("copy, GB/s", copied);
  for (const LayerSpeed& layer : speeds) {
    const auto time = static_cast<double>(layer.time);
    if (layer.multiplications > 0) {
      print_figure(layer.name + ", Tflop/s", 2 * layer.multiplications / time / 1000);
      continue;
    }
    const double share = layer.bytes / time / copied;
    print_figure(layer.name + ", % of the copy's bandwidth", 100 * share);
    EXPECT_GE(share, 0.7) << layer.name;
  }
}

TEST(GpuSpeedOfEpilogues, AGeluWithinItsGemmTakesLessTime) {
  REQUIRE_GPU();
  const EpilogueSpeed speed = time_epilogues(*find_real_gpu(), 4, measured_model());
  print_figure("up and down GEMMs with GELU within, % of the time with GELU behind",
               100 * static_cast<double>(speed.fused) / static_cast<double>(speed.separate));
  print_figure("of 2 epilogues, unknown to cuBLASLt", speed.unknown);
  EXPECT_LT(speed.unknown, 2);
  EXPECT_LT(speed.fused, speed.separate);
}

double executor_adds(bool graph) {
  exec::TrainingOptions options;
  options.model = measured_model();
  exec::DeviceOptions device;
  device.precision = exec::Precision::kBfloat16;
  device.graph = graph;
  const ExecutorSpeed speed = time_executor(*find_real_gpu(), options, device);
  const double adds = static_cast<double>(speed.step) / static_cast<double>(speed.back_to_back) - 1;
  print_figure(std::string("the executor adds") + (graph ? " with a graph" : "") + ", %",
               100 * adds);
  return adds;
}

TEST(GpuExecutor, AddsLessThanThreeHundredthsToItsKernels) {
  REQUIRE_GPU();
  EXPECT_LE(executor_adds(false), 0.03);
}

TEST(GpuExecutor, AddsLessThanAHundredthWithAGraph) {
  REQUIRE_GPU();
  EXPECT_LE(executor_adds(true), 0.01);
}

}  // namespace
}  // namespace bubblescope::tests
