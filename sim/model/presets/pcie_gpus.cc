// NVIDIA's boards on PCI Express: data center, workstation and GeForce.
//
// Peaks, memories and links: NVIDIA's data sheets and white papers, dense, with sums in 32 bits
// (GeForce and the L40 have half of what their chips reach with sums in 16). Nothing was fitted to
// runs on them. What they reach is assumed: 80 % of the peak, as on the H100; GeForce boards, whose
// halved rate leaves power to spare, 93 %, as an RTX 5090 in 8 bits (389 of 419 TFLOP/s: PyTorch
// pull request 155991); boards of A100, H100 and H200 as their SXM modules, by the root of the
// power limits. Two boards joined by an NVLink bridge are taken to use PCI Express, too.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "sim/model/presets/gpu_rates.h"

namespace bubblescope::inline sim {
namespace {

constexpr double kPcie4 = 31.5;
constexpr double kPcie5 = 63;
constexpr double kOneLink = 1.5625;  ///< of 100 Gb/s, for eight devices
constexpr double kGeForceShare = 0.93;
constexpr double kAssumedShare = 0.8;
constexpr double kPowerOfA100 = 400;
constexpr double kPowerOfH100 = 700;

/// Flash attention 2 in TFLOP/s, forward and backward. An RTX A5000 of 111 TFLOP/s has 82 and 77
/// (gpu-mode/ring-attention issue 10, heads of 64), an RTX 4090 of 165 has 151 and 99 (apache/tvm,
/// tl_doc/flash_perf.md, causal, heads of 128).
constexpr const char* kAttentionOfGa10x =
    "74 and 70 % of the peak, as on an RTX A5000 (gpu-mode/ring-attention issue 10)";
constexpr const char* kAttentionOfGeForce =
    "91 and 60 % of the peak, as on an RTX 4090 (apache/tvm, tl_doc/flash_perf.md)";

Kernels make_kernels(const char* generation, double fp8_gain, double forward, double backward,
                     double multiprocessors) {
  return {generation, 0, {0, 50, fp8_gain, forward, backward, multiprocessors}};
}

Kernels ga10x(double multiprocessors) {
  return make_kernels("ga10x", 0, 0.74, 0.70, multiprocessors);
}
Kernels ada(double multiprocessors) { return make_kernels("ada", 1.7, 0.6, 0.45, multiprocessors); }
Kernels ada_geforce(double multiprocessors) {
  return make_kernels("ada", 2, 0.91, 0.6, multiprocessors);
}

/// A board of an SXM module's chip with another power limit and peak. Its generation is its own, so
/// that the errors of runs on modules are not taken for its own.
struct Board {
  Kernels module;
  double module_peak = 0;
  double module_watts = 0;
  double peak = 0;
  double watts = 0;
  double multiprocessors = 0;
  const char* generation = "";
};

Kernels kernels_of(const Board& board) {
  Kernels kernels = with_power(
      board.module, board.module.sustained_teraflops * std::sqrt(board.watts / board.module_watts));
  kernels.rates.attention_forward *= board.module_peak / board.peak;
  kernels.rates.attention_backward *= board.module_peak / board.peak;
  kernels.rates.multiprocessors = board.multiprocessors;
  kernels.generation = board.generation;
  return kernels;
}

Kernels board_of_a100(double watts) {
  return kernels_of({kAmpere, 312, kPowerOfA100, 312, watts, 108, "ampere-pcie"});
}
Kernels board_of_h100(double peak, double watts, double multiprocessors) {
  return kernels_of({kHopper, 989, kPowerOfH100, peak, watts, multiprocessors, "hopper-pcie"});
}

/// Returns what a board reaches, where its module reaches so much.
double reached(double module_teraflops, double watts, double module_watts) {
  return module_teraflops * std::sqrt(watts / module_watts);
}

Sources sources(std::string reachable, std::string attention) {
  return {.base = kSheet,
          .reachable = std::move(reachable),
          .link = "NVIDIA's data sheet (PCI Express, 16 lanes)",
          .network = "assumed, 100 Gb/s for eight devices as in AWS's g5 and g6",
          .host = "NVIDIA's data sheet (PCI Express, 16 lanes)",
          .attention = std::move(attention)};
}

Sources sources_of_board(const char* module) {
  const std::string by_power =
      std::string("assumed, from the ") + module + " by the root of the power limits";
  Sources from = sources(by_power, by_power);
  from.network = "assumed, as the module's";
  return from;
}

constexpr const char* kAssumedGeForce =
    "assumed, 93 % of the peak, as in 8 bits on an RTX 5090 (PyTorch pull request 155991)";
constexpr const char* kAttentionAssumed = "60 and 45 % of the peak, assumed";

const GpuRegistrar kA100Pcie{[] {
  const auto make = [](const char* name, std::vector<std::string> aliases, const char* summary,
                       const Rates& rates, double watts) {
    return define(name, std::move(aliases), summary, rates, board_of_a100(watts),
                  sources_of_board("A100 SXM"));
  };
  return std::vector{
      make("a100-pcie", {"a100-pcie-80gb", "a100-80gb-pcie"}, "A100 PCIe 80 GB, 312 TF, 300 W",
           {312, reached(271, 300, kPowerOfA100), 80, 1.935, kPcie4, 25, kPcie4, 8, 79.1}, 300),
      make("a100-pcie-40", {"a100-pcie-40gb"}, "A100 PCIe 40 GB, 312 TF, 250 W",
           {312, reached(271, 250, kPowerOfA100), 40, 1.555, kPcie4, 25, kPcie4, 8, 39.4}, 250)};
}};
const GpuRegistrar kH100Pcie{[] {
  return std::vector{
      define("h100-pcie", {"h100-pcie-80gb"}, "H100 PCIe 80 GB, 756 TF, 350 W",
             {756, reached(794.5, 350, kPowerOfH100), 80, 2.0, kPcie5, 25, kPcie5, 8, 79.1},
             board_of_h100(756, 350, 114), sources_of_board("H100 SXM")),
      define("h100-nvl", {"h100-nvl-94gb"}, "H100 NVL 94 GB, 835 TF, 400 W; NVLink in pairs alone",
             {835, reached(794.5, 400, kPowerOfH100), 94, 3.9, kPcie5, 25, kPcie5, 8, 93.0},
             board_of_h100(835, 400, 132), sources_of_board("H100 SXM")),
      define("h200-nvl", {}, "H200 NVL 141 GB, 835 TF, 600 W; NVLink in pairs or fours alone",
             {835, reached(794.5, 600, kPowerOfH100), 141, 4.8, kPcie5, 25, kPcie5, 8, 139.8},
             board_of_h100(835, 600, 132), sources_of_board("H100 SXM"))};
}};

const GpuRegistrar kGa10x{[] {
  const Sources from = sources(kAssumed, kAttentionOfGa10x);
  const auto reach = [](double peak) { return kAssumedShare * peak; };
  return std::vector{
      define("a40", {}, "A40 48 GB, 150 TF, 300 W, PCI Express",
             {149.7, reach(149.7), 48, 0.696, kPcie4, kOneLink, kPcie4, 8, 44.3}, ga10x(84), from),
      define("rtx-a6000", {"a6000"}, "RTX A6000 48 GB, 155 TF, 300 W, PCI Express",
             {154.8, reach(154.8), 48, 0.768, kPcie4, kOneLink, kPcie4, 8, 47.4}, ga10x(84), from),
      define("rtx-a5000", {"a5000"}, "RTX A5000 24 GB, 111 TF, 230 W, PCI Express",
             {111.1, reach(111.1), 24, 0.768, kPcie4, kOneLink, kPcie4, 8, 23.6}, ga10x(64), from),
      define("a10", {}, "A10 24 GB, 125 TF, 150 W, PCI Express",
             {125, reach(125), 24, 0.6, kPcie4, kOneLink, kPcie4, 8, 22.0}, ga10x(72), from),
      define("a10g", {}, "A10G 24 GB, 70 TF, 300 W, PCI Express (AWS g5)",
             {70, reach(70), 24, 0.6, kPcie4, kOneLink, kPcie4, 8, 22.0}, ga10x(80), from),
      define("rtx-3090", {"3090"}, "RTX 3090 24 GB, 71 TF, 350 W, PCI Express",
             {71, kGeForceShare * 71, 24, 0.936, kPcie4, kOneLink, kPcie4, 8, 23.6}, ga10x(82),
             sources(kAssumedGeForce, kAttentionOfGa10x))};
}};

const GpuRegistrar kAda{[] {
  const Sources from = sources(kAssumed, kAttentionAssumed);
  const auto reach = [](double peak) { return kAssumedShare * peak; };
  Sources of_l40s = from;
  of_l40s.network = "assumed";
  return std::vector{
      define("l4", {}, "L4 24 GB, 121 TF, 72 W, PCI Express",
             {121, reach(121), 24, 0.3, kPcie4, kOneLink, kPcie4, 8, 22.0}, ada(58), from),
      define("l40", {}, "L40 48 GB, 181 TF, 300 W, PCI Express",
             {181, reach(181), 48, 0.864, kPcie4, kOneLink, kPcie4, 8, 44.4}, ada(142), from),
      define("l40s", {}, "L40S 48 GB, 362 TF, PCI Express only",
             {362, 290, 48, 0.864, kPcie4, 25, kPcie4, 8, 44.4}, ada(142), of_l40s),
      define("rtx-6000-ada", {"rtx-6000-ada-generation"},
             "RTX 6000 Ada 48 GB, 364 TF, 300 W, PCI Express",
             {364.2, reach(364.2), 48, 0.96, kPcie4, kOneLink, kPcie4, 8, 47.4}, ada(142), from),
      define("rtx-4090", {"4090"}, "RTX 4090 24 GB, 165 TF, 450 W, PCI Express",
             {165.2, kGeForceShare * 165.2, 24, 1.008, kPcie4, kOneLink, kPcie4, 8, 23.6},
             ada_geforce(128), sources(kAssumedGeForce, kAttentionOfGeForce))};
}};

const GpuRegistrar kBlackwellRtx{[] {
  Kernels geforce = ada_geforce(170);
  geforce.generation = "blackwell-rtx";
  Kernels pro = ada(188);
  pro.generation = "blackwell-rtx";
  return std::vector{
      define("rtx-5090", {"5090"}, "RTX 5090 32 GB, 210 TF, 575 W, PCI Express",
             {209.5, kGeForceShare * 209.5, 32, 1.792, kPcie5, kOneLink, kPcie5, 8, 31.3}, geforce,
             sources(kAssumedGeForce, kAttentionOfGeForce)),
      define("rtx-pro-6000",
             {"rtx-pro-6000-blackwell", "rtx-pro-6000-blackwell-server-edition",
              "rtx-pro-6000-blackwell-workstation-edition"},
             "RTX PRO 6000 96 GB, 504 TF, 600 W, PCI Express",
             {503.8, kAssumedShare * 503.8, 96, 1.792, kPcie5, kOneLink, kPcie5, 8, 94.9}, pro,
             sources(kAssumed, kAttentionAssumed))};
}};

}  // namespace
}  // namespace bubblescope::inline sim
