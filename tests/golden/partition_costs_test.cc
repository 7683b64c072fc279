// partition of cost files: what it keeps, and what it says that it leaves out.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kMeasured = R"({"format": "bubblescope-costs/1",
  "stages": [{"forward": 10, "backward": 20}, {"forward": 11, "backward": 21},
             {"forward": 12, "backward": 22}, {"forward": 13, "backward": 23}],
  "replicas": [{"stages": [{"forward": 10, "backward": 20}, {"forward": 10, "backward": 20},
                           {"forward": 10, "backward": 20}, {"forward": 10, "backward": 20}]},
               {"stages": [{"forward": 10, "backward": 20}, {"forward": 12, "backward": 22},
                           {"forward": 14, "backward": 24}, {"forward": 16, "backward": 26}]}],
  "noise": {"jitter": 0.05, "step_jitter": 0.01},
  "message": {"latency": "2ms"}, "outside_pipeline": "30ms", "divisible": true})";

class PartitionCosts : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    traces::write_file(path("measured.json"), kMeasured);
  }

  /// Cuts measured.json into stages and returns the messages.
  std::string partition(const std::string& flags) const {
    const CommandOutcome outcome = run_with_messages("partition " + path("measured.json") + " -o " +
                                                     path("cut.json") + " " + flags);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome.output;
  }

  Json cut() const { return Json::parse(traces::read_file(path("cut.json"))); }
};

std::string simulate(const std::string& costs, int ranks) {
  const CommandOutcome outcome = run_command("simulate 1f1b --pp " + std::to_string(ranks) +
                                             " -m 8 --format json --costs " + costs);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return outcome.output;
}

TEST_F(PartitionCosts, BeginWithWhatThePeriodLeavesOut) {
  const std::string output = partition("--stages 2");
  const std::string first = output.substr(0, output.find('\n'));
  EXPECT_NE(first.find("leaves out: messages, the time outside the pipeline, noise, how replicas "
                       "differ"),
            std::string::npos)
      << output;
}

TEST_F(PartitionCosts, WithoutSizesSayThatNoMemoryLimitHolds) {
  traces::write_file(path("measured.json"),
                     R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":2},)"
                     R"({"forward":1,"backward":2}]})");
  EXPECT_NE(partition("--stages 2 --memory 1MB").find("--memory limits nothing"),
            std::string::npos);
  EXPECT_EQ(partition("--stages 2").find("--memory"), std::string::npos);
}

// One stage per layer is the same pipeline, so it must take the same time: with messages, replicas,
// noise and what lies outside the pipeline.
TEST_F(PartitionCosts, OfTheSameStagesPredictTheSameStep) {
  partition("--stages 4");
  Json before = Json::parse(simulate(path("measured.json"), 4));
  Json after = Json::parse(simulate(path("cut.json"), 4));
  EXPECT_TRUE(before.contains("noise"));
  for (Json* const report : {&before, &after}) report->erase("made_with");
  EXPECT_EQ(before, after);
}

TEST_F(PartitionCosts, OfJoinedStagesKeepWhatTheFileSays) {
  partition("--stages 2");
  const Json costs = cut();
  EXPECT_EQ(costs["message"]["latency"], "2000000ns");
  EXPECT_EQ(costs["outside_pipeline"], "30000000ns");
  EXPECT_EQ(costs["noise"]["jitter"], 0.05);
  EXPECT_EQ(costs["replicas"].size(), 2u);
  ASSERT_EQ(costs["stages"].size(), 2u);
  EXPECT_EQ(costs["stages"][1]["forward"], "25000000ns");  // 12 + 13 ms
  EXPECT_EQ(Json::parse(simulate(path("cut.json"), 2))["pp"], 2);
}

TEST_F(PartitionCosts, LeaveWholeBackwardsWhole) {
  EXPECT_NE(partition("--stages 2").find("which are written whole"), std::string::npos);
  EXPECT_EQ(cut()["stages"][0]["backward"], "41000000ns");
  EXPECT_FALSE(cut()["stages"][0].contains("input_grad"));
  partition("--stages 2 --weight-grad-share 0.25");
  EXPECT_EQ(cut()["stages"][0]["weight_grad"], "10250000ns");
  EXPECT_EQ(cut()["replicas"][0]["stages"][0]["weight_grad"], "10000000ns");
}

// 11 and 9 ms stay 11 and 9 ms, and are not made halves of 20.
TEST_F(PartitionCosts, KeepHowBackwardsSplit) {
  traces::write_file(path("measured.json"),
                     R"({"format": "bubblescope-costs/1", "input_grad": 11, "weight_grad": 9,
                         "forward": [10, 10]})");
  EXPECT_NE(partition("--stages 2 --weight-grad-share 0.5").find("changes nothing"),
            std::string::npos);
  EXPECT_EQ(cut()["stages"][0]["input_grad"], "11000000ns");
  EXPECT_EQ(cut()["stages"][0]["weight_grad"], "9000000ns");
}

// Two replicas of the whole would take (120 ms + 4 (2-1) 8 GB / (1 GB/s 2)) / 2 = 8 s, so stages
// are not replicated; if weights were free, the period would be 120 ms / 2.
TEST_F(PartitionCosts, CountTheWeightsOfTheFile) {
  traces::write_file(path("measured.json"),
                     R"({"format": "bubblescope-costs/1",
                         "stages": [{"forward": 10, "backward": 20, "weight_bytes": "4GB"},
                                    {"forward": 30, "backward": 60, "weight_bytes": "4GB"}]})");
  const Json stages =
      read_report("partition " + path("measured.json") + " --workers 2 --bandwidth 1GB/s");
  EXPECT_EQ(stages["period_ns"], 90'000'000) << stages;
}

}  // namespace
}  // namespace bubblescope::tests
