// NVIDIA and AMD devices; GpuDef::sources names the source of every number.
//
// Peak, memory and link rates, and the best measured GEMMs (MAMF): S. Bekman, "Machine Learning
// Engineering Open Book" (stas00/ml-engineering, 744d01e), compute/accelerator and network.
// gpu_rates.cc says where the rates of links come from; pcie_gpus.cc has the boards on PCI Express.
#include <string>
#include <utility>

#include "sim/model/presets/gpu_rates.h"

namespace bubblescope::inline sim {
namespace {

// Attention: A100 and B200 fitted to kernels of SimuMax's data, H100 between runs of several
// sources. fp8_gain, and the sustained rates of Hopper and Blackwell: fitted to published steps
// (docs/accuracy_published.md); the root of the power limit carries them to a generation's others,
// as from an A100 of 400 W to one of 300 W (0.87 and 0.75 of the peak). GB300 follows it in 16
// bits; in 8 bits it is faster, and B200 and B300 are as fast as GB200 and GB300, by pairs of runs
// that differ in the device alone (docs/accuracy_steps.md, Constants). B300 is so in 16 bits, too.
const Kernels kBlackwell{"blackwell", 1190, {0, 110, 1.88, 0.55, 0.425, 148, 1, 0.13, 0.805}};
/// TFLOP/s that GB200 and GB300 sustain in 16 bits, and their gain in 8.
constexpr double kGb200Rate = 1304;
constexpr double kGb300Rate = 1408;
constexpr double kGb300Gain = 2.27;

/// A device of Blackwell with this rate in 16 bits, which is as fast as the GB200 in 8.
Kernels like_gb200_in_8_bits(double teraflops) {
  return with_gain(with_rate(kBlackwell, teraflops),
                   kBlackwell.rates.fp8_gain * kGb200Rate / teraflops);
}

const GpuRegistrar kP100{[] {
  return define("p100", {"p100-sxm2-16gb"}, "P100 SXM2 16 GB, 21 TF fp16",
                {21.2, 17, 16, 0.732, 80, 12.5, 15.8, 8, 15.9}, {},
                {.base = "NVIDIA's Tesla P100 data sheet",
                 .reachable = kAssumed,
                 .link = "NVIDIA's Tesla P100 data sheet",
                 .host = "PCI Express 3.0, 16 lanes"});
}};
const GpuRegistrar kV100{[] {
  return define("v100", {"v100-sxm2-32gb"}, "V100 SXM2 32 GB, 125 TF fp16",
                {125, 100, 32, 0.9, 150, 12.5, 15.8, 8, 31.7}, {},
                {.base = "NVIDIA's Tesla V100 data sheet",
                 .reachable = kAssumed,
                 .link = "NVIDIA's Tesla V100 data sheet",
                 .host = "PCI Express 3.0, 16 lanes"});
}};
const GpuRegistrar kA100{[] {
  return define("a100", {"a100-80", "a100-80gb", "a100-sxm4-80gb"}, "A100 SXM 80 GB, 312 TF",
                {312, 271, 80, 2.0, 300, 25, 31.5, 8, 79.1}, kAmpere);
}};
const GpuRegistrar kA100Small{[] {
  return define("a100-40", {"a100-40gb", "a100-sxm4-40gb"}, "A100 SXM 40 GB, 312 TF",
                {312, 271, 40, 1.555, 300, 25, 31.5, 8, 39.4}, kAmpere);
}};
const GpuRegistrar kA800{[] {
  return define(
      "a800", {"a800-80gb", "a800-sxm4-80gb"}, "A100 80 GB with 200 GB/s of NVLink",
      {312, 271, 80, 2.0, 200, 25, 31.5, 8, 79.1}, kAmpere,
      {.base = "as the A100", .reachable = "as the A100", .link = "NVIDIA's A800 data sheet"});
}};
const GpuRegistrar kH100{[] {
  return define("h100", {"h100-80", "h100-80gb", "h100-80gb-hbm3", "h100-sxm"},
                "H100 SXM 80 GB, 989 TF", {989, 794.5, 80, 3.35, 450, 50, 63, 8, 79.1}, kHopper);
}};
const GpuRegistrar kH100Slow{[] {
  return define("h100-hbm2e", {"h100-96"}, "H100 SXM 96 GB of HBM2e, 500 W instead of 700",
                {989, 794.5, 96, 2.4, 450, 50, 63, 8, 95.0}, with_power(kHopper, 541),
                {.base = "pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md",
                 .reachable = "as the H100"});
}};
const GpuRegistrar kH800{[] {
  return define(
      "h800", {}, "H100 with 200 GB/s of NVLink", {989, 794.5, 80, 3.35, 200, 50, 63, 8, 79.1},
      kHopper,
      {.base = "as the H100",
       .reachable = "as the H100",
       .link = "assumed, from the 160 GB/s of arXiv 2412.19437, section 3.2.2, as reached"});
}};
const GpuRegistrar kH20{[] {
  return define("h20", {}, "H20 96 GB, 148 TF", {148, 140, 96, 4.0, 450, 50, 63, 8, 95.0},
                with_rate({"hopper", 0, {0, 50, 1.9, 0.8, 0.7, 78}}, 137),
                {.base = kSheet, .reachable = "assumed, 95 % of the peak"});
}};
const GpuRegistrar kH200{[] {
  return define("h200", {"h200-141gb"}, "H200 SXM 141 GB, 989 TF",
                {989, 794.5, 141, 4.8, 450, 50, 63, 8, 139.8}, kHopper);
}};
// A superchip is a node of its own; NVLink joins two (NVL2) or 32 (NVL32) of them at the same rate.
// Its GEMMs reach more than an H100's under 900 W, and are taken to sustain as much.
constexpr const char* kSuperchip = "NVIDIA's GH200 data sheet";
constexpr const char* kChipToChip = "NVIDIA's GH200 data sheet (NVLink-C2C, 900 GB/s both ways)";
const GpuRegistrar kGh200{[] {
  return define("gh200", {"gh200-96", "gh200-96gb", "gh200-480gb"},
                "GH200 96 GB of HBM3, 989 TF; nodes of 1, or 2 to 32 by NVLink",
                {989, 828.6, 96, 4.0, 450, 50, 450, 1, 94.88}, kHopper,
                {.reachable = std::string(kBook) +
                              ", compute/accelerator (MAMF, the version of 141 GB under 900 W)",
                 .host = kChipToChip,
                 .program = "PyTorch's out-of-memory message in Lightning-AI/litgpt issue 1892"});
}};
const GpuRegistrar kGh200Large{[] {
  return define("gh200-144", {"gh200-144gb", "gh200-144g-hbm3e"},
                "GH200 144 GB of HBM3e, 989 TF; nodes of 1, or 2 to 32 by NVLink",
                {989, 828.6, 144, 4.9, 450, 50, 450, 1, 142.5}, kHopper,
                {.base = kSuperchip,
                 .reachable = std::string(kBook) + ", compute/accelerator (MAMF, under 900 W)",
                 .host = kChipToChip,
                 .program = "cuDeviceTotalMem, 153,008,209,920 bytes"});
}};
const GpuRegistrar kB200{[] {
  return define("b200", {}, "B200 180 GB, 2250 TF, 1000 W",
                {2250, 1745, 180, 8.0, 900, 50, 63, 8, 178.3}, like_gb200_in_8_bits(1190));
}};
const GpuRegistrar kB300{[] {
  return define("b300", {"b300-sxm6-ac"}, "B300 288 GB, 2250 TF, 1100 W",
                {2250, 1745, 288, 8.0, 900, 100, 63, 8, 268},
                with_gain(with_rate(kBlackwell, kGb300Rate), kGb300Gain),
                {.reachable = "as the B200"});
}};
const GpuRegistrar kGb200{[] {
  return define("gb200", {}, "GB200 186 GB, 2500 TF, 1200 W; NVLink domain of 72, in trays of 4",
                {2500, 1822, 186, 8.0, 900, 50, 450, 72, 184.3}, with_rate(kBlackwell, kGb200Rate),
                {.host = "NVIDIA's GB200 data sheet (NVLink-C2C, 900 GB/s both ways)"});
}};
const GpuRegistrar kGb300{[] {
  return define("gb300", {}, "GB300 288 GB, 2500 TF, 1400 W; NVLink domain of 72, in trays of 4",
                {2500, 1822, 288, 8.0, 900, 100, 450, 72, 276},
                with_gain(with_rate(kBlackwell, kGb300Rate), kGb300Gain),
                {.base = kSheet,
                 .reachable = "as the GB200",
                 .host = "NVIDIA's GB200 data sheet (NVLink-C2C, 900 GB/s both ways)"});
}};
constexpr double kRcclShare = 0.75 / 0.8356;  // 48 of 64 GB/s, where messages are taken to reach 53
constexpr const char* kMesh =
    "AMD, with 75 % of it for collectives, over all links at once "
    "(rocm.blogs.amd.com/software-tools-optimization/mi300x-rccl-xgmi)";
// Attention: the 31 causal rows of the table in ROCm/aiter, op_tests/cpp/mha/README.md, whose
// gradients of queries AMD's training scripts add up in 32 bits on MI300X and MI325X, and in 16 on
// MI355X (NVTE_CK_IS_V3_ATOMIC_FP32).
const Kernels kCdna{"cdna3", 0, {0, 80, 1.7, 0.43, 0.33, 304, 1, 0.13, kRcclShare}};
const GpuRegistrar kMi300x{[] {
  return define("mi300x", {}, "MI300X 192 GB, 1307 TF; 64 GB/s to each of 7 peers",
                {1307, 668, 192, 5.3, 64, 50, 63, 8, 191.6}, kCdna, {.link = kMesh});
}};
const GpuRegistrar kMi325x{[] {
  return define("mi325x", {}, "MI325X 256 GB, 1300 TF; 64 GB/s to each of 7 peers",
                {1300, 668, 256, 6.0, 64, 50, 63, 8, 255.6}, kCdna,
                {.reachable = "as the MI300X", .link = kMesh});
}};
const GpuRegistrar kMi355x{[] {
  return define("mi355x", {}, "MI355X 288 GB, 2500 TF, 1400 W; 77 GB/s to each of 7 peers",
                {2500, 1565, 288, 8.0, 76.5, 50, 63, 8, 287.98},
                {"cdna4", 0, {0, 80, 1.7, 0.54, 0.43, 256, 1, 0.13, kRcclShare}},
                {.base = "AMD's MI355X data sheet, without sparsity",
                 .reachable = "stas00/ml-engineering of August 2026, compute/accelerator (MAMF)",
                 .link = "AMD's MI355X data sheet (153 GB/s both ways)"});
}};

// A pod of TPUs is one node: every chip is on the torus.
constexpr const char* kTpus = "Jouppi et al., \"TPU v4\", ISCA 2023, table 4 (per link)";
Sources tpu_sources() {
  return {.base = kTpus, .reachable = kAssumed, .link = kTpus, .host = "assumed"};
}
const GpuRegistrar kTpu3{[] {
  return define("tpu-v3", {}, "TPU v3 chip 32 GB, 123 TF; 70 GB/s per link",
                {123, 98, 32, 0.9, 70, 12.5, 15.8, 1024}, {}, tpu_sources());
}};
const GpuRegistrar kTpu4{[] {
  return define("tpu-v4", {}, "TPU v4 chip 32 GB, 275 TF; 50 GB/s per link",
                {275, 220, 32, 1.2, 50, 12.5, 15.8, 4096}, {}, tpu_sources());
}};

}  // namespace
}  // namespace bubblescope::inline sim
