// Devices from files: what files state, what a preset adds, and what must not be missing.
#include "traces/costs/gpu_file.h"

#include <gtest/gtest.h>

#include "sim/ir/error.h"

namespace bubblescope::tests {
namespace {

std::string complaint(const char* text) {
  try {
    traces::parse_gpu(text, "gpu.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(GpuFiles, ChangeWhatTheySayOfAPreset) {
  const Gpu& preset = Registry<GpuDef>::instance().find("a100")->gpu;
  const Gpu gpu = traces::parse_gpu(R"({"like": "a100", "reachable_teraflops": 250, "per_node": 16,
                                "between_nodes": {"latency": "5us", "gigabytes_per_second": 50}})",
                                    "gpu.json");
  EXPECT_EQ(gpu.reachable_flops, 250e12);
  EXPECT_EQ(gpu.per_node, 16);
  EXPECT_EQ(gpu.outside.time(50e9), 5'000 + 1'000'000'000);
  EXPECT_EQ(gpu.peak_flops, preset.peak_flops);
  EXPECT_EQ(gpu.memory, preset.memory);
  EXPECT_EQ(gpu.inside.latency, preset.inside.latency);
}

TEST(GpuFiles, StandAloneWhereTheySayEverything) {
  const Gpu gpu =
      traces::parse_gpu(R"({"peak_teraflops": 100, "reachable_teraflops": 80, "memory": "16GiB",
                                "memory_gigabytes_per_second": 600, "per_node": 4,
                                "within_node": {"latency": "1us", "gigabytes_per_second": 20},
                                "between_nodes": {"latency": "2us", "gigabytes_per_second": 10},
                                "host": {"latency": "3us", "gigabytes_per_second": 5}})",
                        "gpu.json");
  EXPECT_EQ(gpu.memory, Bytes{16} << 30);
  EXPECT_EQ(gpu.host.time(5e9), 3'000 + 1'000'000'000);
}

TEST(GpuFiles, SayWhatIsMissingOrWrong) {
  EXPECT_NE(complaint(R"({"peak_teraflops": 100})").find("reachable_teraflops"), std::string::npos);
  EXPECT_NE(complaint(R"({"like": "a10O"})").find("did you mean 'a100'"), std::string::npos);
  EXPECT_NE(complaint(R"({"like": "a100", "memroy": "1GiB"})").find("memory"), std::string::npos);
  EXPECT_NE(complaint(R"({"like": "a100", "reachable_teraflops": 400})").find("than the peak"),
            std::string::npos);
}

// Boards of four have no switch: two devices of them are joined by a third of their links, and all
// four use all. Boards of eight, NVLink domains of racks and links that a file states are as
// stated.
TEST(GpuFiles, OfFourDevicesDivideTheirLinks) {
  const Gpu& whole = Registry<GpuDef>::instance().find("h200")->gpu;
  const Gpu board = traces::parse_gpu(R"({"like": "h200", "per_node": 4})", "gpu.json");
  const double rate = whole.inside.bytes_per_second;
  EXPECT_DOUBLE_EQ(3 * board.inside.bytes_per_second, rate);
  EXPECT_DOUBLE_EQ(board.links(2) * board.inside.bytes_per_second, rate / 3);
  EXPECT_DOUBLE_EQ(board.links(4) * board.inside.bytes_per_second, rate);
  for (const char* text :
       {R"({"like": "h200", "per_node": 8})", R"({"like": "h200", "per_node": 2})"}) {
    const Gpu other = traces::parse_gpu(text, "gpu.json");
    EXPECT_DOUBLE_EQ(other.links(2) * other.inside.bytes_per_second, rate) << text;
  }
  const Gpu rack = traces::parse_gpu(R"({"like": "gb200", "per_node": 4})", "gpu.json");
  EXPECT_FALSE(rack.is_mesh);
  const Gpu stated = traces::parse_gpu(
      R"({"like": "h200", "per_node": 4,
          "within_node": {"latency": "1us", "gigabytes_per_second": 20}})",
      "gpu.json");
  EXPECT_FALSE(stated.is_mesh);
  EXPECT_DOUBLE_EQ(stated.inside.bytes_per_second, 20e9);
}

}  // namespace
}  // namespace bubblescope::tests
