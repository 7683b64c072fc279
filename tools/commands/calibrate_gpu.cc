// Makes a device of what was measured.
#include "tools/commands/calibrate_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "exec/calibration/measure_gemms.h"
#include "exec/gpu/host/device_backend.h"
#include "exec/training/host_bench.h"
#include "sim/ir/error.h"
#include "sim/model/cost_assumptions.h"
#include "sim/model/find_gpu.h"
#include "tools/print.h"
#include "traces/costs/gpu_file_writer.h"

namespace bubblescope::tools {

namespace {

std::string find_preset(const std::string& name) {
  if (const GpuDef* def = find_gpu(name)) return def->name;
  throw Error(fmt::format(
      "no gpu is called '{}'{}; calibrate --gpu takes a preset ('bubblescope list gpus' shows "
      "them all), which has what is not measured",
      name, suggest_gpu(name)));
}

/// `devices` is null for a backend whose work runs on the host.
std::unique_ptr<exec::KernelBench> open_bench(const std::string& backend,
                                              const exec::DeviceBackendDef* devices) {
  if (devices != nullptr && devices->open_bench) return devices->open_bench();
  if (devices == nullptr && !exec::find_backend(backend).join) return exec::open_host_bench();
  throw Error("calibrate --gpu measures one device of one process; give --backend cuda or cpu");
}

/// Latency and rate of copies to the host, between the two largest sizes.
std::optional<Link> measure_host_link(const exec::DeviceBackendDef* devices) {
  if (devices == nullptr || !devices->time_host_copies) return std::nullopt;
  const std::vector<exec::MessageTime> times = devices->time_host_copies(1, {});
  const exec::MessageTime& most = times.back();
  const exec::MessageTime& less = times[times.size() - 2];
  if (most.nanos <= less.nanos) return std::nullopt;
  const double rate =
      static_cast<double>(most.bytes - less.bytes) / static_cast<double>(most.nanos - less.nanos);
  const auto transfer = static_cast<Nanos>(static_cast<double>(most.bytes) / rate);
  return Link{std::max<Nanos>(0, most.nanos - transfer), rate * 1e9};
}

void report(const traces::MeasuredGpu& gpu) {
  const auto [slowest, fastest] = std::minmax_element(
      gpu.gemms.begin(), gpu.gemms.end(),
      [](const auto& a, const auto& b) { return a.flops_per_second < b.flops_per_second; });
  print_message("measured {} GEMMs on {}: {:.4g} to {:.4g} TFLOP/s\n", gpu.gemms.size(),
                gpu.measured_on, slowest->flops_per_second / 1e12,
                fastest->flops_per_second / 1e12);
}

}  // namespace

std::string calibrate_gpu(const CalibrateGpuRequest& request) {
  traces::MeasuredGpu gpu;
  gpu.like = find_preset(request.like);
  const exec::DeviceBackendDef* const devices = exec::find_device_backend(request.backend);
  const std::unique_ptr<exec::KernelBench> bench = open_bench(request.backend, devices);
  const exec::MeasuredKernels measured =
      exec::measure_kernels(*bench, static_cast<Nanos>(request.seconds * 1e9));
  gpu.measured_on = bench->device;
  gpu.gemms = measured.gemms;
  for (const MeasuredGemm& gemm : gpu.gemms)
    gpu.reachable_flops = std::max(gpu.reachable_flops, gemm.flops_per_second);
  // A host has no stated peak, and none but a host reaches more than it states.
  const double stated = find_gpu(gpu.like)->gpu.peak_flops;
  if (devices == nullptr || gpu.reachable_flops > stated) gpu.peak_flops = gpu.reachable_flops;
  if (bench->memory > 0) gpu.memory = bench->memory;
  gpu.memory_bytes_per_second =
      measured.copied_bytes_per_second / CostAssumptions{}.memory_efficiency;
  gpu.host = measure_host_link(devices);
  report(gpu);
  return traces::write_gpu(gpu);
}

}  // namespace bubblescope::tools
