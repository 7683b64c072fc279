// NVIDIA and AMD devices; GpuDef::sources names the source of every number.
//
// Peak, memory and link rates, and the best measured GEMMs (MAMF): S. Bekman, "Machine Learning
// Engineering Open Book" (stas00/ml-engineering, 744d01e), compute/accelerator and network.
// Point-to-point rates between two devices: an H100's NVLink reaches 376 of its 450 GB/s
// (NVIDIA/nccl issue 1264); the same fraction is assumed for the others. Latencies: 9.8 us inside a
// node (NVIDIA/nccl-tests issue 331), 20 us and 90 % of the rate between nodes (calculon's
// InfiniBand, caa4b11). To the host: the rate of the PCI Express slot, or of NVLink-C2C, by the
// vendors' data sheets, of which the same fraction is assumed.
#include <cmath>
#include <string>
#include <utility>

#include "sim/model/gpu.h"

namespace bubblescope::inline sim {
namespace {

constexpr const char* kBook = "stas00/ml-engineering@744d01e";
constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

struct Rates {
  double peak_teraflops;
  double reachable_teraflops;
  double memory_gigabytes;  ///< as stated
  double memory_terabytes_per_second;
  double link_gigabytes_per_second;  ///< one way, as stated
  double network_gigabytes_per_second;
  double host_gigabytes_per_second;  ///< one way, as stated
  std::int32_t per_node = 8;
  /// The memory available to a program, in GiB: the total capacity in PyTorch's out-of-memory
  /// messages; 0: all that is stated.
  double program_gibibytes = 0;
};

/// The sources of those numbers that differ between devices.
struct Sources {
  std::string base = std::string(kBook) + ", compute/accelerator";
  std::string reachable = std::string(kBook) + ", compute/accelerator/benchmarks (MAMF)";
  std::string link = std::string(kBook) + ", network";
  std::string host = std::string(kBook) + ", network (PCI Express, 16 lanes)";
};

Gpu gpu_of(const Rates& rates) {
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
  return gpu;
}

/// A number with at most one decimal.
std::string text(double value) {
  std::string digits = std::to_string(std::llround(value * 10));
  const char last = digits.back();
  digits.pop_back();
  if (digits.empty()) digits = "0";
  return last == '0' ? digits : digits + "." + last;
}

std::string program_text(const Rates& rates) {
  if (rates.program_gibibytes == 0) return "all of the memory for a program: assumed";
  return text(rates.program_gibibytes) +
         " GiB of the memory for a program: the total capacity in PyTorch's out-of-memory messages";
}

std::vector<std::string> sources_of(const Rates& rates, const Sources& from) {
  return {
      text(rates.peak_teraflops) + " TFLOP/s at most, " + text(rates.memory_gigabytes) + " GB at " +
          text(rates.memory_terabytes_per_second * 1000) + " GB/s: " + from.base,
      text(rates.reachable_teraflops) + " TFLOP/s reached: " + from.reachable,
      program_text(rates),
      text(rates.link_gigabytes_per_second) + " GB/s inside a node, one way: " + from.link,
      "83.6 % of it reached, as 376 of an H100's 450 GB/s: NVIDIA/nccl issue 1264",
      "9.8 us inside a node: NVIDIA/nccl-tests issue 331",
      text(rates.network_gigabytes_per_second) +
          " GB/s per device between nodes: " + std::string(kBook) + ", network",
      "20 us and 90 % of it between nodes: calculon-ai/calculon@caa4b11",
      text(rates.host_gigabytes_per_second) + " GB/s to the host, one way: " + from.host +
          "; 10 us and 83.6 % of it: assumed, as inside a node",
  };
}

GpuDef define(const char* name, std::vector<std::string> aliases, const char* summary,
              const Rates& rates, const Sources& from = {}) {
  return {name, std::move(aliases), summary, kBook, gpu_of(rates), sources_of(rates, from)};
}

constexpr const char* kAssumed = "assumed, 80 % of the peak as on the H100";

const GpuRegistrar kP100{define("p100", {}, "P100 SXM2 16 GB, 21 TF fp16",
                                {21.2, 17, 16, 0.732, 80, 12.5, 15.8, 8, 15.9},
                                {.base = "NVIDIA's Tesla P100 data sheet",
                                 .reachable = kAssumed,
                                 .link = "NVIDIA's Tesla P100 data sheet",
                                 .host = "PCI Express 3.0, 16 lanes"})};
const GpuRegistrar kV100{define("v100", {}, "V100 SXM2 32 GB, 125 TF fp16",
                                {125, 100, 32, 0.9, 150, 12.5, 15.8, 8, 31.7},
                                {.base = "NVIDIA's Tesla V100 data sheet",
                                 .reachable = kAssumed,
                                 .link = "NVIDIA's Tesla V100 data sheet",
                                 .host = "PCI Express 3.0, 16 lanes"})};
const GpuRegistrar kA100{define("a100", {"a100-80"}, "A100 SXM 80 GB, 312 TF",
                                {312, 271, 80, 2.0, 300, 25, 31.5, 8, 79.1})};
const GpuRegistrar kA100Small{
    define("a100-40", {}, "A100 SXM 40 GB, 312 TF", {312, 271, 40, 1.555, 300, 25, 31.5, 8, 39.4})};
const GpuRegistrar kH100{
    define("h100", {}, "H100 SXM 80 GB, 989 TF", {989, 794.5, 80, 3.35, 450, 50, 63, 8, 79.1})};
const GpuRegistrar kH800{
    define("h800", {}, "H100 with 200 GB/s of NVLink", {989, 794.5, 80, 3.35, 200, 50, 63, 8, 79.1},
           {.base = "as the H100",
            .reachable = "as the H100",
            .link = "assumed, from the 160 GB/s of arXiv 2412.19437, section 3.2.2, as reached"})};
const GpuRegistrar kH200{
    define("h200", {}, "H200 SXM 141 GB, 989 TF", {989, 794.5, 141, 4.8, 450, 50, 63, 8, 139.8})};
const GpuRegistrar kB200{
    define("b200", {}, "B200 180 GB, 2250 TF", {2250, 1745, 180, 8.0, 900, 50, 63, 8, 178.3})};
const GpuRegistrar kGb200{
    define("gb200", {}, "GB200 186 GB, 2500 TF; NVLink domain of 72, in trays of 4",
           {2500, 1822, 186, 8.0, 900, 50, 450, 72, 184.3},
           {.host = "NVIDIA's GB200 data sheet (NVLink-C2C, 900 GB/s both ways)"})};
const GpuRegistrar kMi300x{define("mi300x", {},
                                  "MI300X 192 GB, 1307 TF; 64 GB/s to each of 7 peers",
                                  {1307, 668, 192, 5.3, 64, 50, 63, 8, 191.6})};

// A pod of TPUs is one node: every chip is on the torus.
constexpr const char* kTpus = "Jouppi et al., \"TPU v4\", ISCA 2023, table 4 (per link)";
const Sources kTpuSources{.base = kTpus, .reachable = kAssumed, .link = kTpus, .host = "assumed"};
const GpuRegistrar kTpu3{define("tpu-v3", {}, "TPU v3 chip 32 GB, 123 TF; 70 GB/s per link",
                                {123, 98, 32, 0.9, 70, 12.5, 15.8, 1024}, kTpuSources)};
const GpuRegistrar kTpu4{define("tpu-v4", {}, "TPU v4 chip 32 GB, 275 TF; 50 GB/s per link",
                                {275, 220, 32, 1.2, 50, 12.5, 15.8, 4096}, kTpuSources)};

}  // namespace
}  // namespace bubblescope::inline sim
