// Writes devices from their vendors' rates.
//
// Point-to-point rates between two devices: an H100's NVLink reaches 376 of its 450 GB/s
// (NVIDIA/nccl issue 1264); the same fraction is assumed for the others. Latencies: 9.8 us inside a
// node (NVIDIA/nccl-tests issue 331), 20 us and 90 % of the rate between nodes (calculon's
// InfiniBand, caa4b11). To the host: the rate of the PCI Express slot, or of NVLink-C2C, by the
// vendors' data sheets, of which the same fraction is assumed.
#include "sim/model/presets/gpu_rates.h"

#include <cmath>
#include <string>
#include <utility>

namespace bubblescope::inline sim {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

Gpu gpu_of(const Rates& rates, const Kernels& kernels) {
  constexpr double kReached = 376.0 / 450.0;
  Gpu gpu;
  gpu.per_node = rates.per_node;
  gpu.peak_flops = rates.peak_teraflops * kTera;
  gpu.reachable_flops = rates.reachable_teraflops * kTera;
  const double memory =
      rates.program_gibibytes > 0 ? rates.program_gibibytes : rates.memory_gigabytes;
  gpu.memory = std::llround(memory * (1 << 30));
  gpu.memory_bytes_per_second = rates.memory_terabytes_per_second * kTera;
  gpu.inside = {9'800, kReached * rates.link_gigabytes_per_second * kGiga};
  gpu.outside = {20'000, 0.9 * rates.network_gigabytes_per_second * kGiga};
  gpu.host = {10'000, kReached * rates.host_gigabytes_per_second * kGiga};
  gpu.kernels = kernels.rates;
  gpu.kernels.sustained_flops = kernels.sustained_teraflops * kTera;
  gpu.generation = kernels.generation;
  gpu.is_mesh = gpu.generation.starts_with("cdna");
  // NVIDIA's boards of four A100s or H100s, and nodes of four GH200s: 100 and 150 GB/s between two
  // (apps.fz-juelich.de/jsc/hps/jupiter/configuration.html).
  gpu.divides_links = gpu.generation == "ampere" || gpu.generation == "hopper";
  return gpu;
}

/// Returns a number with at most one decimal.
std::string text(double value) {
  std::string digits = std::to_string(std::llround(value * 10));
  const char last = digits.back();
  digits.pop_back();
  if (digits.empty()) digits = "0";
  return last == '0' ? digits : digits + "." + last;
}

std::string program_text(const Rates& rates, const Sources& from) {
  if (rates.program_gibibytes == 0) return "all of the memory for a program: assumed";
  return text(rates.program_gibibytes) + " GiB of the memory for a program: " + from.program;
}

std::vector<std::string> sources_of(const Rates& rates, const Sources& from) {
  std::vector<std::string> sources{
      text(rates.peak_teraflops) + " TFLOP/s at most, " + text(rates.memory_gigabytes) + " GB at " +
          text(rates.memory_terabytes_per_second * 1000) + " GB/s: " + from.base,
      text(rates.reachable_teraflops) + " TFLOP/s reached: " + from.reachable,
      program_text(rates, from),
      text(rates.link_gigabytes_per_second) + " GB/s inside a node, one way: " + from.link,
      "83.6 % of it reached, as 376 of an H100's 450 GB/s: NVIDIA/nccl issue 1264",
      "9.8 us inside a node: NVIDIA/nccl-tests issue 331",
      text(rates.network_gigabytes_per_second) + " GB/s per device between nodes: " + from.network,
      "20 us and 90 % of it between nodes: calculon-ai/calculon@caa4b11",
      text(rates.host_gigabytes_per_second) + " GB/s to the host, one way: " + from.host +
          "; 10 us and 83.6 % of it: assumed, as inside a node",
  };
  if (!from.attention.empty()) sources.push_back("attention: " + from.attention);
  return sources;
}

}  // namespace

Kernels with_rate(Kernels kernels, double teraflops) {
  kernels.sustained_teraflops = teraflops;
  return kernels;
}

Kernels with_gain(Kernels kernels, double gain) {
  kernels.rates.fp8_gain = gain;
  return kernels;
}

Kernels with_power(Kernels kernels, double teraflops) {
  const double share = teraflops / kernels.sustained_teraflops;
  kernels.rates.attention_forward *= share;
  kernels.rates.attention_backward *= share;
  return with_rate(std::move(kernels), teraflops);
}

GpuDef define(const char* name, std::vector<std::string> aliases, const char* summary,
              const Rates& rates, const Kernels& kernels, const Sources& from) {
  const std::string main = from.base == Sources{}.base ? kBook : from.base;
  return {name, std::move(aliases), summary, main, gpu_of(rates, kernels), sources_of(rates, from)};
}

}  // namespace bubblescope::inline sim
