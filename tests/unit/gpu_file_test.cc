// Devices from files: what files state, what a preset adds, and what must not be missing.
#include "traces/costs/gpu_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "sim/ir/error.h"
#include "tests/support/temporary_folder.h"
#include "tools/flags/model_options.h"
#include "tools/inputs/resolve_model.h"
#include "traces/files/file.h"

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

/// Bytes per second that so many devices of a node can use of one device's links.
double rate_over(const Gpu& gpu, std::int32_t members) {
  return gpu.links(members) * gpu.between_devices().bytes_per_second;
}

TEST(GpuFiles, OfOurOtherKindsAreNamed) {
  EXPECT_EQ(complaint(R"({"format": "bubblescope-costs/1", "stages": []})"),
            "gpu.json: /format: is 'bubblescope-costs/1', but a device is needed here");
  EXPECT_NE(complaint(R"({"format": "mine"})").find("unknown key 'format'"), std::string::npos);
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

// GEMMs of an H100 sustain 640 of 794.5 TFLOP/s that are reached, of a peak of 989. Half the peak
// halves all three; 600 reached sustain 600 / 794.5 of the 640, whatever the peak; a file that
// states neither changes no rate.
TEST(GpuFiles, KeepTheSharesOfRatesThatTheyLeaveOut) {
  const Gpu& preset = Registry<GpuDef>::instance().find("h100")->gpu;
  const Gpu half = traces::parse_gpu(R"({"like": "h100", "peak_teraflops": 494.5})", "gpu.json");
  EXPECT_DOUBLE_EQ(half.reachable_flops, preset.reachable_flops / 2);
  EXPECT_DOUBLE_EQ(half.sustained_flops(), preset.sustained_flops() / 2);
  for (const char* text :
       {R"({"like": "h100", "reachable_teraflops": 600})",
        R"({"like": "h100", "peak_teraflops": 756, "reachable_teraflops": 600})"}) {
    const Gpu slower = traces::parse_gpu(text, "gpu.json");
    EXPECT_DOUBLE_EQ(slower.reachable_flops, 600e12) << text;
    EXPECT_DOUBLE_EQ(slower.sustained_flops(), preset.sustained_flops() * 600 / 794.5) << text;
  }
  const Gpu same = traces::parse_gpu(R"({"like": "h100", "memory": "64GiB"})", "gpu.json");
  EXPECT_EQ(same.sustained_flops(), preset.sustained_flops());
  EXPECT_EQ(same.reachable_flops, preset.reachable_flops);
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
  EXPECT_NE(complaint(R"({"like": "mi30Ox"})").find("did you mean 'mi300x'"), std::string::npos);
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
  EXPECT_DOUBLE_EQ(rate_over(board, 2), rate / 3);
  EXPECT_DOUBLE_EQ(rate_over(board, 4), rate);
  for (const char* text :
       {R"({"like": "h200", "per_node": 8})", R"({"like": "h200", "per_node": 2})"}) {
    const Gpu other = traces::parse_gpu(text, "gpu.json");
    EXPECT_DOUBLE_EQ(rate_over(other, 2), rate) << text;
  }
  const Gpu rack = traces::parse_gpu(R"({"like": "gb200", "per_node": 4})", "gpu.json");
  EXPECT_TRUE(rack.has_switch());
  const Gpu stated = traces::parse_gpu(
      R"({"like": "h200", "per_node": 4,
          "within_node": {"latency": "1us", "gigabytes_per_second": 20}})",
      "gpu.json");
  EXPECT_TRUE(stated.has_switch());
  EXPECT_DOUBLE_EQ(rate_over(stated, 2), 20e9);
}

using GpuFilesAndFlags = TemporaryFolder;

// Links follow the last number of devices, whatever the file said: two of 8 or of 2 H200s have all
// links of one, two of three a half, two of four a third. The link of a mesh is that of one pair in
// nodes of any size.
TEST_F(GpuFilesAndFlags, DivideLinksByTheNodesOfTheFlag) {
  const auto rate_in_nodes = [&](const char* device, std::int32_t per_file, std::int32_t per_flag) {
    tools::ModelOptions options;
    options.model = "llama3-8b";
    options.gpu = path("gpu.json");
    options.per_node = per_flag;
    traces::write_file(options.gpu,
                       fmt::format(R"({{"like": "{}", "per_node": {}}})", device, per_file));
    return rate_over(tools::resolve_model(options).gpu, 2);
  };
  const double rate = rate_over(Registry<GpuDef>::instance().find("h200")->gpu, 2);
  for (const std::int32_t per_file : {2, 3, 4, 8}) {
    EXPECT_DOUBLE_EQ(rate_in_nodes("h200", per_file, 8), rate) << per_file;
    EXPECT_DOUBLE_EQ(rate_in_nodes("h200", per_file, 4), rate / 3) << per_file;
    EXPECT_DOUBLE_EQ(rate_in_nodes("h200", per_file, 3), rate / 2) << per_file;
    EXPECT_DOUBLE_EQ(rate_in_nodes("h200", per_file, 2), rate) << per_file;
  }
  const double of_mesh = Registry<GpuDef>::instance().find("mi300x")->gpu.inside.bytes_per_second;
  for (const std::int32_t per_flag : {2, 4, 8})
    EXPECT_DOUBLE_EQ(rate_in_nodes("mi300x", 4, per_flag), of_mesh) << per_flag;
}

}  // namespace
}  // namespace bubblescope::tests
