// calibrate --gpu: GEMMs and copies that are measured alone, their file, and what models make of
// it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "exec/calibration/measure_gemms.h"
#include "exec/gpu/host/gpu_bench.h"
#include "sim/ir/error.h"
#include "sim/model/fit_gemm_rate.h"
#include "sim/model/layer_timer.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/temporary_folder.h"
#include "tools/command.h"
#include "traces/costs/gpu_file.h"
#include "traces/costs/gpu_file_writer.h"

namespace bubblescope::tests {
namespace {

/// A device on which every GEMM has one rate, and copies another.
class EvenBench : public exec::KernelBench {
 public:
  explicit EvenBench(double flops_per_second) : rate_(flops_per_second) {}

  Nanos run_gemm(const GemmShape& shape, std::int64_t times) override {
    ++runs;
    const double seconds = static_cast<double>(times) * shape.flops() / rate_;
    spent += seconds;
    return std::llround(seconds * 1e9);
  }
  Nanos run_copy(Bytes bytes, std::int64_t times) override { return bytes * times; }

  double spent = 0;  ///< seconds
  int runs = 0;

 private:
  double rate_;
};

// 3 passes of 3 numbers of rows and 11 weights. The largest take 7.7 TFLOP, 10 ms of 770 TFLOP/s;
// all of them fit 60 s, at most 200 runs each.
TEST(MeasureKernels, MeasuresEveryPassOfEveryShapeInTheTimeGiven) {
  EvenBench bench(770e12);
  const exec::MeasuredKernels measured = exec::measure_kernels(bench, 60'000'000'000);
  std::map<GemmPass, int> passes;
  for (const MeasuredGemm& gemm : measured.gemms) {
    ++passes[gemm.shape.pass];
    EXPECT_NEAR(gemm.flops_per_second, 770e12, 770e9);
  }
  EXPECT_EQ(passes.size(), 3u);
  for (const auto& [pass, count] : passes) EXPECT_EQ(count, 33);
  EXPECT_LT(bench.spent, 66);
  EXPECT_DOUBLE_EQ(measured.copied_bytes_per_second,
                   2e9);  // a nanosecond per byte, read and written
}

// A host with 50 GFLOP/s would need 1,500 s for the largest shapes three times.
TEST(MeasureKernels, HalvesAllSidesOnSlowDevices) {
  EvenBench bench(50e9);
  const exec::MeasuredKernels measured = exec::measure_kernels(bench, 10'000'000'000);
  double largest = 0;
  for (const MeasuredGemm& gemm : measured.gemms)
    largest = std::max(largest, gemm.shape.flops() / 50e9);
  EXPECT_LT(largest, 1);
  EXPECT_LT(bench.spent, 12);
  EXPECT_EQ(measured.gemms.size(), 99u);
}

GemmShape forward(double rows, double inputs, double outputs) {
  return {GemmPass::kForward, rows, inputs, outputs};
}

/// A second per FLOP.
double unit_formula(const GemmShape& shape) { return shape.flops(); }

// The first takes twice what the formula says, the second half of that. At the second, 3 doublings
// away, the first has a weight of exp(-9 / 0.98) = 0.0001. Between them both weigh the same, and
// the root of 2 / 2 is 1. Far away only their mean is left, which is 1 as well.
TEST(MeasuredGemms, AreInterpolatedByTheirLogarithms) {
  const std::vector<MeasuredGemm> measured{{forward(64, 64, 64), 0.5}, {forward(512, 64, 64), 2}};
  const auto ratio = [&](double rows) {
    return interpolate_ratio(measured, forward(rows, 64, 64), unit_formula);
  };
  EXPECT_NEAR(ratio(64), std::pow(2, 1 / 1.1), 0.01);
  EXPECT_NEAR(ratio(512), std::pow(0.5, 1 / 1.1), 0.01);
  EXPECT_NEAR(ratio(std::sqrt(64.0 * 512)), 1, 1e-9);
  EXPECT_NEAR(ratio(1e9), 1, 1e-6);
  EXPECT_EQ(interpolate_ratio(measured, {GemmPass::kWeightGrad, 64, 64, 64}, unit_formula), 1);
  EXPECT_EQ(interpolate_ratio({}, forward(64, 64, 64), unit_formula), 1);
}

// Rates of 100 n / (n + 40) for each side, measured exactly.
TEST(MeasuredGemms, GiveTheFormulaBackThatTheyFollow) {
  std::vector<MeasuredGemm> measured;
  for (const double rows : {64.0, 512.0, 1e6})
    for (const double inputs : {128.0, 4096.0, 1e6}) {
      const double rate = 100 * rows / (rows + 40) * inputs / (inputs + 40) * 1e6 / (1e6 + 40);
      measured.push_back({forward(rows, inputs, 1e6), rate});
    }
  const FittedGemmRate fitted = fit_gemm_rate(measured);
  EXPECT_EQ(fitted.half_size, 40);
  EXPECT_NEAR(fitted.flops_per_second, 100, 0.1);
}

TEST(MeasuredGemms, CorrectEachPassOfALayer) {
  ModelOnDevices on;
  on.model = Registry<ModelDef>::instance().find("llama3-8b")->model;
  on.gpu = Registry<GpuDef>::instance().find("h100")->gpu;
  on.parallel.sequence = 8192;
  on.parallel.gradients = Gradients::kBf16;  // products of W move no gradients of 32 bits
  const PhaseTimes by_formula = LayerTimer(on).gemm(8192, 4096, 14'336);
  EXPECT_EQ(by_formula.forward, by_formula.weight_grad);
  const double rate = 2.0 * 8192 * 4096 * 14'336 / by_formula.forward * 1e9;
  // Alone in their passes, they are also their means: F takes half of the time, W twice.
  on.gpu.kernels.gemms = {{{GemmPass::kForward, 8192, 4096, 14'336}, 2 * rate},
                          {{GemmPass::kWeightGrad, 8192, 4096, 14'336}, rate / 2}};
  const PhaseTimes measured = LayerTimer(on).gemm(8192, 4096, 14'336);
  EXPECT_NEAR(measured.forward, by_formula.forward / 2, 1e-6 * by_formula.forward);
  EXPECT_NEAR(measured.input_grad, by_formula.forward, 1e-6 * by_formula.forward);
  EXPECT_NEAR(measured.weight_grad, by_formula.forward * 2, 1e-6 * by_formula.forward);
}

TEST(MeasuredGpus, AreReadAsTheyWereWritten) {
  traces::MeasuredGpu gpu;
  gpu.like = "h100";
  gpu.measured_on = "a \"device\"";
  gpu.reachable_flops = 700e12;
  gpu.memory = Bytes{79} << 30;
  gpu.memory_bytes_per_second = 3.2e12;
  gpu.host = Link{5'000, 50e9};
  gpu.gemms = {{{GemmPass::kForward, 1024, 512, 4096}, 412.5e12},
               {{GemmPass::kWeightGrad, 16'384, 8192, 28'672}, 700e12}};
  const Gpu read = traces::parse_gpu(traces::write_gpu(gpu), "my_gpu.json");
  EXPECT_EQ(read.kernels.gemms, gpu.gemms);
  EXPECT_EQ(read.memory, *gpu.memory);
  EXPECT_EQ(read.reachable_flops, 700e12);
  EXPECT_EQ(read.memory_bytes_per_second, 3.2e12);
  EXPECT_EQ(read.host.latency, 5'000);
  EXPECT_EQ(read.peak_flops, 989e12);
  EXPECT_EQ(read.generation, "hopper");
}

TEST(MeasuredGpus, NameThePassesThatThereAre) {
  const char* const text =
      R"({"like": "h100", "gemms": [{"pass": "B", "rows": 1, "inputs": 1, "outputs": 1, "teraflops": 1}]})";
  EXPECT_EQ(error_of([&] { traces::parse_gpu(text, "my_gpu.json"); }),
            "my_gpu.json: /gemms/0/pass: no pass is called 'B'; write F, I or W");
}

// 1e-3 ns per multiplication on one of 100 multiprocessors: 2 FLOPs in 1e-5 ns are 200 TFLOP/s.
// Copies take half a nanosecond per byte, which is read and written: 4 GB/s.
TEST(GpuBench, TimesGemmsAndCopiesOfADevice) {
  FakeGpu& gpu = reset_fake_gpu(1, 100);
  gpu.times.nanos_per_multiplication = 1e-3;
  gpu.times.nanos_per_byte = 0.5;
  {
    const auto bench = exec::open_gpu_bench(fake_gpu_calls());
    for (const Named<GemmPass>& pass : kGemmPasses)
      EXPECT_NEAR(static_cast<double>(bench->run_gemm({pass.choice, 512, 256, 1024}, 3)),
                  3 * 512.0 * 256 * 1024 * 1e-5, 2)
          << pass.name;
    EXPECT_EQ(bench->run_copy(1 << 20, 2), 1 << 20);
    EXPECT_GT(bench->memory, 0);
  }
  EXPECT_EQ(gpu.handles, 0);
  EXPECT_EQ(gpu.bytes, 0);
}

class CalibrateGpu : public TemporaryFolder {};

// The whole path on this host: measure, write, read, predict.
TEST_F(CalibrateGpu, MeasuresThisHostForModels) {
  const std::string file = path("host.json");
  const CommandOutcome made = call_command(
      tools::run_calibrate, {"--gpu", "h100", "--backend", "cpu", "--seconds", "0.05", "-o", file});
  ASSERT_EQ(made.status, 0) << made.output;
  const Gpu host = traces::read_gpu(file);
  ASSERT_FALSE(host.kernels.gemms.empty());
  double fastest = 0;
  for (const MeasuredGemm& gemm : host.kernels.gemms)
    fastest = std::max(fastest, gemm.flops_per_second);
  EXPECT_NEAR(host.reachable_flops, fastest, 1e-3 * fastest + 1e8);
  EXPECT_EQ(host.peak_flops, host.reachable_flops);
  const CommandOutcome predicted = call_command(
      tools::run_simulate,
      {"1f1b", "--pp", "2", "-m", "2", "--model", "llama3-8b", "--gpu", file, "--format", "json"});
  const auto report = nlohmann::json::parse(predicted.output);
  EXPECT_TRUE(
      report["interval"].is_null());  // of published runs, which no such device has predicted
  EXPECT_LE(report["mfu"].get<double>(), 1);
  EXPECT_GT(report["mfu"].get<double>(), 0);
}

TEST_F(CalibrateGpu, TakesAPresetThatHasTheRest) {
  for (const char* name : {"h10", "my_gpu.json"})
    EXPECT_TRUE(fails_with(
        [&] {
          tools::run_calibrate({"--gpu", name, "--backend", "cpu"});
        },
        fmt::format("no gpu is called '{}'", name)))
        << name;
  EXPECT_EQ(error_of([&] {
              tools::run_calibrate({"1f1b", "--gpu", "h100", "--backend", "cpu"});
            }),
            "--gpu measures a device and runs no SCHEDULES; give one of both");
}

}  // namespace
}  // namespace bubblescope::tests
