// Pipelines whose ranks have devices of several kinds: who gets how many layers, times, links,
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/ir/error.h"
#include "sim/model/model_step.h"
#include "sim/model/place_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tools/command.h"
#include "tools/flags/model_options.h"
#include "tools/inputs/resolve_model.h"

namespace bubblescope::tests {
namespace {

ModelOnDevices on_devices(const std::string& gpus, const char* model = "llama3-8b") {
  tools::ModelOptions options;
  options.model = model;
  options.gpu = gpus;
  return tools::resolve_model(options);
}

nlohmann::json simulated(const std::string& gpus, const std::string& schedule = "1f1b") {
  return read_report(tools::run_simulate,
                     {schedule, "--pp", "4", "-m", "8", "--model", "llama3-8b", "--gpu", gpus});
}

TEST(UnequalDevices, AreNamedPerRank) {
  const ModelOnDevices on = on_devices("2xh100,a100,a100");
  ASSERT_EQ(on.rank_gpus.size(), 4u);
  EXPECT_EQ(on.gpu_of(1), on.gpu);
  EXPECT_EQ(on.gpu_of(2).generation, "ampere");
  EXPECT_EQ(on.device, "2xh100,a100,a100");
  EXPECT_TRUE(on_devices("h100").rank_gpus.empty());
  EXPECT_EQ(error_of([&] { on_devices("2xh100,mi300"); }),
            "no gpu is called 'mi300'; did you mean 'mi300x'? ('bubblescope list gpus' shows them "
            "all; any other is a .json file with 'like', one of these, and its own rates)");
  EXPECT_EQ(error_of([&] { on_devices("0xh100,a100"); }),
            "--gpu 0xh100: give 1 to 65536 ranks, such as 4xh100");
}

// The same device under four names is one device: nothing changes.
TEST(UnequalDevices, GiveTheSameStepWhereTheyAreEqual) {
  const nlohmann::json one = simulated("h100");
  const nlohmann::json four = simulated("h100,3xh100");
  for (const char* key : {"mfu", "fits", "head_room_bytes"}) EXPECT_EQ(one[key], four[key]) << key;
  EXPECT_NEAR(four["makespan_ns"].get<double>(), one["makespan_ns"].get<double>(),
              0.05 * one["makespan_ns"].get<double>());
}

// An A100 takes more than twice as long for a layer, so it gets less than half of the layers.
TEST(UnequalDevices, GetLayersByTheirSpeed) {
  const nlohmann::json report = simulated("2xh100,2xa100");
  const auto layers = report["model"]["layers_per_stage"].get<std::vector<int>>();
  EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), 32);
  EXPECT_GT(layers[1], 2 * layers[2]);
  EXPECT_TRUE(report["interval"].is_null());
  const auto fast = simulated("h100")["makespan_ns"].get<double>();
  const auto slow = simulated("a100")["makespan_ns"].get<double>();
  EXPECT_GT(report["makespan_ns"].get<double>(), fast);
  EXPECT_LT(report["makespan_ns"].get<double>(), slow);
}

// Halves of 1 / (a + b) of the work: with layers that can be cut, both devices would be busy all
// the time, and the step would take the harmonic mean of the equal pipelines' steps.
TEST(UnequalDevices, TakeAboutTheHarmonicMean) {
  const auto fast = simulated("h100")["makespan_ns"].get<double>();
  const auto slow = simulated("a100")["makespan_ns"].get<double>();
  const auto both = simulated("2xh100,2xa100")["makespan_ns"].get<double>();
  const double mean = 2 / (1 / fast + 1 / slow);
  EXPECT_NEAR(both, mean, 0.15 * mean);
}

TEST(UnequalDevices, AreConnectedByTheSlowerNetwork) {
  const ModelOnDevices on = on_devices("2xh100,2xa100");
  EXPECT_EQ(find_rank_link(on, 0, 1), on.gpu.inside);
  EXPECT_EQ(find_rank_link(on, 1, 2), on.gpu_of(2).outside);  // 25 GB/s, an H100's are 50
  EXPECT_EQ(find_rank_link(on, 2, 1), on.gpu_of(2).outside);
}

TEST(UnequalDevices, EachHaveTheirOwnMemory) {
  const ModelOnDevices on = on_devices("2xa100,2xa100-40");
  EXPECT_EQ(on.usable_memory(0), on.gpu.memory - on.reserved_memory);
  EXPECT_LT(on.usable_memory(3), on.usable_memory(0));
  EXPECT_EQ(on.usable_memories(4)[3], on.usable_memory(3));
}

// A replica of a stage on a slow device decides; here both pipelines hold both halves.
TEST(UnequalDevices, HoldStagesOfTwoPipelinesAtTheSpeedOfTheSlower) {
  const nlohmann::json report = simulated("2xh100,2xa100", "chimera");
  const auto layers = report["model"]["layers_per_stage"].get<std::vector<int>>();
  EXPECT_LE(*std::max_element(layers.begin(), layers.end()) -
                *std::min_element(layers.begin(), layers.end()),
            3);  // the head takes as long as three layers
}

// A list of all devices of a job, as `plan` takes it.
TEST(UnequalDevices, AreSpreadOverTheRanks) {
  EXPECT_EQ(simulated("32xh100,32xa100")["makespan_ns"], simulated("2xh100,2xa100")["makespan_ns"]);
  EXPECT_EQ(simulated("h100,a100")["makespan_ns"], simulated("2xh100,2xa100")["makespan_ns"]);
  EXPECT_EQ(error_of([&] { spread_devices(on_devices("32xh100,32xa100").rank_gpus, 3); }),
            "`gpu` names devices of several kinds for 64 ranks, and `pp` 3 cannot be divided "
            "in their proportions; give multiples of 2");
}

TEST(UnequalDevices, AreOnePerRank) {
  const ModelOnDevices on = on_devices("h100,a100");
  Shape shape;
  shape.ranks = 4;
  EXPECT_EQ(error_of([&] { compute_model_step(on, shape); }),
            "`gpu` names 2 devices for the 4 ranks of a pipeline; give one for each, such as "
            "2xh100,2xa100");
}

}  // namespace
}  // namespace bubblescope::tests
