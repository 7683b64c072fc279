// Chooses shapes, and how often each runs.
#include "exec/calibration/measure_gemms.h"

#include <algorithm>

namespace bubblescope::exec {

namespace {

struct Sides {
  double inputs;
  double outputs;
};

/// Slices and whole weights of layers with 1024 to 28672 numbers.
constexpr Sides kWeights[] = {
    {512, 4096},  {1024, 4096}, {4096, 1024}, {4096, 4096},   {4096, 14'336}, {14'336, 4096},
    {2048, 8192}, {8192, 2048}, {8192, 8192}, {8192, 28'672}, {28'672, 8192},
};
constexpr double kGemmRows[] = {1024, 4096, 16'384};
constexpr GemmPass kPasses[] = {GemmPass::kForward, GemmPass::kInputGrad, GemmPass::kWeightGrad};
constexpr double kMinSide = 8;

/// Each GEMM runs at least so often: to warm up, to be timed once, and to be measured.
constexpr double kMinRuns = 3;
constexpr std::int64_t kMaxRuns = 200;  // a stream holds about a thousand
constexpr GemmShape kProbe{GemmPass::kForward, 512, 512, 512};
constexpr Bytes kCopy = Bytes{1} << 28;
constexpr Bytes kCopyWithoutDevice = Bytes{1} << 24;

/// Returns all shapes, their sides divided by `divisor`.
std::vector<GemmShape> list_shapes(double divisor) {
  const auto side = [&](double whole) { return std::max(kMinSide, whole / divisor); };
  std::vector<GemmShape> shapes;
  for (const GemmPass pass : kPasses)
    for (const double rows : kGemmRows)
      for (const Sides& weight : kWeights) {
        const GemmShape shape{pass, side(rows), side(weight.inputs), side(weight.outputs)};
        if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
      }
  return shapes;
}

double total_flops(const std::vector<GemmShape>& shapes) {
  double flops = 0;
  for (const GemmShape& shape : shapes) flops += shape.flops();
  return flops;
}

double to_seconds(Nanos time) { return static_cast<double>(std::max<Nanos>(1, time)) / 1e9; }

std::vector<GemmShape> choose_shapes(KernelBench& bench, Nanos budget) {
  bench.run_gemm(kProbe, 1);
  const double rate = kProbe.flops() / to_seconds(bench.run_gemm(kProbe, 1));
  double divisor = 1;
  std::vector<GemmShape> shapes = list_shapes(divisor);
  while (kMinRuns * total_flops(shapes) / rate > to_seconds(budget) && divisor < 2048) {
    divisor *= 2;
    shapes = list_shapes(divisor);
  }
  return shapes;
}

/// How often something that takes so long runs within this time.
std::int64_t fit_runs(Nanos each, Nanos slice) {
  return std::clamp<std::int64_t>(slice / std::max<Nanos>(1, each), 1, kMaxRuns);
}

MeasuredGemm measure(KernelBench& bench, const GemmShape& shape, Nanos slice) {
  bench.run_gemm(shape, 1);
  const std::int64_t runs = fit_runs(bench.run_gemm(shape, 1), slice);
  const double seconds = to_seconds(bench.run_gemm(shape, runs)) / static_cast<double>(runs);
  return {shape, shape.flops() / seconds};
}

double measure_copies(KernelBench& bench, Nanos slice) {
  const Bytes bytes = bench.memory > 8 * kCopy ? kCopy : kCopyWithoutDevice;
  bench.run_copy(bytes, 1);
  const std::int64_t runs = fit_runs(bench.run_copy(bytes, 1), slice);
  return 2 * static_cast<double>(bytes) * static_cast<double>(runs) /
         to_seconds(bench.run_copy(bytes, runs));
}

}  // namespace

MeasuredKernels measure_kernels(KernelBench& bench, Nanos budget) {
  const std::vector<GemmShape> shapes = choose_shapes(bench, budget);
  const Nanos slice = budget / static_cast<Nanos>(shapes.size() + 1);
  MeasuredKernels measured;
  for (const GemmShape& shape : shapes) measured.gemms.push_back(measure(bench, shape, slice));
  measured.copied_bytes_per_second = measure_copies(bench, slice);
  return measured;
}

}  // namespace bubblescope::exec
