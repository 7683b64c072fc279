// Presets of devices: how boards on PCI Express follow from modules, and what is said of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/model/find_gpu.h"
#include "sim/model/gpu.h"

namespace bubblescope::tests {
namespace {

const Gpu& gpu_of(const char* name) { return Registry<GpuDef>::instance().find(name)->gpu; }

// A board of the H100's chip under half its power: root of a half of the module's GEMMs and, in
// TFLOP/s, of its attention. Its links are not NVLink's, which four modules divide.
TEST(Boards, OnPciExpressFollowTheirModulesByPower) {
  const Gpu& module = gpu_of("h100");
  Gpu board = gpu_of("h100-pcie");
  const double share = std::sqrt(350.0 / 700.0);
  EXPECT_NEAR(board.sustained_flops() / module.sustained_flops(), share, 1e-9);
  EXPECT_NEAR(board.reachable_flops / module.reachable_flops, share, 1e-9);
  EXPECT_NEAR(board.kernels.attention_forward * board.peak_flops,
              share * module.kernels.attention_forward * module.peak_flops, 1e3);
  EXPECT_EQ(board.kernels.fp8_gain, module.kernels.fp8_gain);
  board.per_node = 4;
  EXPECT_TRUE(board.has_switch());
  EXPECT_NE(board.generation, module.generation) << "it would have the module's interval";
}

struct Product {
  const char* name;
  const char* preset;
};

// As nvidia-smi and PyTorch print them.
TEST(Products, AreThePresetsThatTheyName) {
  constexpr Product kProducts[] = {{"NVIDIA A100-SXM4-80GB", "a100"},
                                   {"NVIDIA A100-SXM4-40GB", "a100-40"},
                                   {"NVIDIA A100 80GB PCIe", "a100-pcie"},
                                   {"NVIDIA A100-PCIE-40GB", "a100-pcie-40"},
                                   {"NVIDIA A800-SXM4-80GB", "a800"},
                                   {"NVIDIA H100 80GB HBM3", "h100"},
                                   {"NVIDIA H100 PCIe", "h100-pcie"},
                                   {"NVIDIA H100 NVL", "h100-nvl"},
                                   {"NVIDIA H200", "h200"},
                                   {"NVIDIA H200 NVL", "h200-nvl"},
                                   {"NVIDIA GH200 480GB", "gh200"},
                                   {"NVIDIA B200", "b200"},
                                   {"NVIDIA B300 SXM6 AC", "b300"},
                                   {"NVIDIA L40", "l40"},
                                   {"NVIDIA L40S", "l40s"},
                                   {"NVIDIA A10G", "a10g"},
                                   {"NVIDIA RTX A6000", "rtx-a6000"},
                                   {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
                                   {"NVIDIA GeForce RTX 4090", "rtx-4090"},
                                   {"Tesla V100-SXM2-32GB", "v100"},
                                   {"Tesla P100-SXM2-16GB", "p100"},
                                   {"AMD Instinct MI300X", "mi300x"},
                                   {"nvidia h100 pcie", "h100-pcie"}};
  for (const Product& product : kProducts) {
    const GpuDef* const found = find_gpu(product.name);
    ASSERT_NE(found, nullptr) << product.name;
    EXPECT_EQ(found->name, product.preset) << product.name;
  }
}

// Another memory, board or power makes another device.
TEST(Products, WithMoreInTheirNamesAreOtherDevices) {
  for (const char* name : {"Tesla V100-SXM2-16GB", "Tesla V100-PCIE-32GB", "NVIDIA A100-SXM-64GB",
                           "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA H100 80GB HBM2e",
                           "NVIDIA H800 PCIe", "NVIDIA GeForce RTX 4090 D",
                           "NVIDIA GeForce RTX 4090 Laptop GPU", "NVIDIA GeForce RTX 3090 Ti",
                           "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "NVIDIA"}) {
    EXPECT_EQ(find_gpu(name), nullptr) << name;
    EXPECT_EQ(suggest_gpu(name), "") << name;
  }
}

TEST(Products, AreSuggestedByOneName) {
  EXPECT_EQ(suggest_gpu("NVIDIA H10O"), "; did you mean 'h100'?");
  EXPECT_EQ(suggest_gpu("NVIDIA DGX B200"), "; did you mean 'b200'?");
  EXPECT_EQ(suggest_gpu("mi300"), "; did you mean 'mi300x'?");
  EXPECT_EQ(suggest_gpu("NVIDIA A100-SXM-80GB"), "; did you mean 'a100'?");
}

// Each says what is stated, what was measured elsewhere and what is assumed.
TEST(Boards, SayWhichOfTheirNumbersAreAssumed) {
  for (const char* name : {"a40", "l4", "l40s", "rtx-4090", "rtx-5090", "a100-pcie", "h100-nvl"}) {
    const GpuDef& def = *Registry<GpuDef>::instance().find(name);
    const auto says = [&](const char* subject, const char* word) {
      return std::any_of(def.sources.begin(), def.sources.end(), [&](const std::string& line) {
        return line.find(subject) != std::string::npos && line.find(word) != std::string::npos;
      });
    };
    EXPECT_TRUE(says("reached: ", "assumed")) << name;
    EXPECT_TRUE(says("between nodes", "assumed")) << name;
    EXPECT_TRUE(says("attention: ", "")) << name;
    EXPECT_TRUE(says("TFLOP/s at most", "data sheet")) << name;
  }
}

}  // namespace
}  // namespace bubblescope::tests
