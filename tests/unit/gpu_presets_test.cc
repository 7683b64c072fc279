// Presets of devices: how boards on PCI Express follow from modules, and what is said of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

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
