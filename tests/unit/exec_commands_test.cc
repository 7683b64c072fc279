// Tests run, compare --backend and calibrate as the command line calls them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/units.h"
#include "tests/support/command.h"
#include "tests/support/error_text.h"
#include "tools/command.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

struct Outcome {
  int status = 0;
  std::string output;

  Json json() const { return Json::parse(output); }
};

Outcome call(int (*command)(const tools::Arguments&), const tools::Arguments& arguments) {
  testing::internal::CaptureStdout();
  const int status = command(arguments);
  std::fflush(stdout);
  return {status, testing::internal::GetCapturedStdout()};
}

tools::Arguments small_transformer(tools::Arguments arguments) {
  for (const char* word :
       {"--backend", "cpu", "--work", "transformer", "--hidden-size", "8", "--seq-length", "4",
        "--vocab-size", "13", "--warmup", "1", "--steps", "1"})
    arguments.emplace_back(word);
  return arguments;
}

/// A file that is deleted when the test ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "-" + name))
                  .string()) {}
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(RunCommand, ManyStepsOfEitherOptimizerStayWithWhatOneRankTrains) {
  // Chimera adds gradients in another order than the serial reference. Rounding differences grow
  // with the steps, by a factor that depends on the learning rate: a rate of 0.1 makes Adam's 4e-2
  // in ten steps.
  for (const char* optimizer : {"sgd", "adam"}) {
    tools::Arguments arguments = small_transformer(
        {"chimera", "--pp", "2", "-m", "4", "--format", "json", "--training-optimizer", optimizer});
    arguments.back() = "30";
    EXPECT_EQ(call(tools::run_run, arguments).json()["gradients_match"], true) << optimizer;
  }
}

TEST(RunCommand, TrainsAndSaysThatTheGradientsAreRight) {
  const Outcome outcome = call(
      tools::run_run, small_transformer({"zb-h1", "--pp", "2", "-m", "4", "--format", "json"}));
  EXPECT_EQ(outcome.status, 0);
  const Json report = outcome.json();
  EXPECT_EQ(report["source"], "cpu");
  EXPECT_EQ(report["work"], "transformer");
  EXPECT_EQ(report["gradients_match"], true);
  EXPECT_FALSE(report["device"].get<std::string>().empty());
  for (const Json& rank : report["ranks"])
    EXPECT_EQ(rank["busy_ns"].get<Nanos>() + rank["idle_ns"].get<Nanos>(), report["makespan_ns"]);
}

// A step of hours would be lost for a typing error.
TEST(RunCommand, UnknownNumbersAreRefusedBeforeAnythingRuns) {
  const CommandOutcome outcome =
      run_command("run 1f1b --pp 2 -m 2 --work sleep --fail-if 'makespan>1'");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_EQ(outcome.output, "");
  EXPECT_EQ(run_command("run 1f1b --pp 2 -m 2 --work sleep --fail-if 'makespan_ns<1'").status, 0);
}

TEST(RunCommand, WhatIsOnlyPlayedHasNoGradients) {
  for (const char* work : {"sleep", "spin"}) {
    const Outcome outcome =
        call(tools::run_run, {"1f1b", "--pp", "2", "-m", "2", "--f", "10us", "--b", "20us",
                              "--work", work, "--format", "json", "--steps", "2"});
    EXPECT_TRUE(outcome.json()["gradients_match"].is_null());
    EXPECT_EQ(outcome.json()["makespans_ns"].size(), 2u);
  }
}

TEST(RunCommand, ADeadRankIsTheMachinesFaultAndLeavesAPartialTimeline) {
  const TemporaryFile saved("partial.json");
  testing::internal::CaptureStderr();
  const Outcome outcome =
      call(tools::run_run, {"gpipe", "--pp", "2", "-m", "2", "--f", "10us", "--b", "20us",
                            "--inject", "rank=1,op=1F1,die", "--save", saved.path()});
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_EQ(outcome.status, 3);
  std::ifstream file(saved.path());
  const std::string breakdown = Json::parse(file)["breakdown"];
  EXPECT_EQ(breakdown.find("rank 1 died at 1F1, as --inject says; every rank was stopped: rank 1 "
                           "at 1F1 (running); rank 0 at "),
            0u)
      << breakdown;
  EXPECT_EQ(message.find("bubblescope: " + breakdown), 0u) << message;
}

TEST(AnalyzeCommand, SaysThatAStepBrokeOffAndDoesNotJudgeItsRanks) {
  const TemporaryFile broken("broken.json");
  const TemporaryFile whole("whole.json");
  testing::internal::CaptureStderr();
  call(tools::run_run, {"gpipe", "--pp", "2", "-m", "2", "--f", "10us", "--b", "20us", "--inject",
                        "rank=1,op=1F1,die", "--save", broken.path()});
  call(tools::run_simulate, {"gpipe", "--pp", "2", "-m", "2", "--save", whole.path()});
  testing::internal::GetCapturedStderr();
  EXPECT_TRUE(fails_with(
      [&] {
        tools::run_diff({whole.path(), broken.path()});
      },
      " is a step that did not complete: rank 1 died at 1F1, as --inject says; every rank "
      "was stopped: rank 1 at 1F1 (running); rank 0 at 0B0 waits for 1B0 of rank 1"));
  const Json alone = call(tools::run_analyze, {broken.path(), "--format", "json"}).json();
  EXPECT_TRUE(alone["stragglers"].is_null());
  EXPECT_EQ(alone["notes"][0].get<std::string>().find("this step did not complete: rank 1 "
                                                      "died at 1F1"),
            0u)
      << alone["notes"];
  const Json both =
      call(tools::run_analyze, {broken.path(), whole.path(), "--format", "json"}).json();
  EXPECT_EQ(both["iterations"], 1);
  EXPECT_EQ(both["per_iteration"][0]["label"], whole.path());
  EXPECT_EQ(both["makespan_ns"], 9'000'000);  // (m + p - 1) (f + b) = 3 x 3 ms
  EXPECT_EQ(both["notes"][0].get<std::string>().find("1 incomplete step left out: rank 1"), 0u)
      << both["notes"];
}

TEST(RunCommand, SavesTheTrainingAlsoWithoutVerification) {
  const TemporaryFile saved("training.json");
  tools::Arguments arguments = small_transformer({"1f1b", "--pp", "2", "-m", "2", "--no-verify"});
  arguments.insert(arguments.end(), {"--save-training", saved.path()});
  EXPECT_EQ(call(tools::run_run, arguments).status, 0);
  std::ifstream file(saved.path());
  EXPECT_EQ(Json::parse(file)["stages"].size(), 2u);
}

TEST(RunCommand, ADeathIsReportedEvenIfTheDiskIsFull) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(error_of([&] {
              call(tools::run_run, {"gpipe", "--pp", "2", "-m", "2", "--inject",
                                    "rank=1,op=1F1,die", "--save", "/dev/full"});
            }),
            "cannot write /dev/full: No space left on device");
  testing::internal::GetCapturedStdout();
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("bubblescope: rank 1 died at 1F1"), 0u);
}

TEST(RunCommand, AnUnknownBackendNamesTheNearest) {
  EXPECT_EQ(error_of([&] {
              tools::run_run({"gpipe", "--pp", "2", "-m", "2", "--backend", "cpus"});
            }),
            "no backend is called 'cpus'; did you mean 'cpu'? ('bubblescope list backends' shows "
            "those of this build)");
}

TEST(CompareCommand, AStepWithoutTimeIsTheBest) {
  const CommandOutcome outcome =
      run_command("compare 1f1b,zb-h1 --pp 2 -m 4 --f 0 --b 0 --i 1 --w 1 --wide");
  EXPECT_NE(outcome.output.find("0 ms   +0.00%"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("9 ms        -"), std::string::npos) << outcome.output;
}

TEST(CompareCommand, ComparesSchedulesThatTrainWithEachOtherOnly) {
  const CommandOutcome outcome =
      run_with_messages("compare 1f1b,zb-h1,forward-only --pp 4 -m 8 --wide");
  EXPECT_NE(outcome.output.find("forward-only has no backwards; 'vs best'"), std::string::npos);
  EXPECT_NE(outcome.output.find("27 ms   +0.00%"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("11 ms   +0.00%"), std::string::npos) << outcome.output;
  EXPECT_EQ(run_with_messages("compare forward-only --pp 4 -m 8").output.find("bubblescope:"),
            std::string::npos);
}

TEST(CompareCommand, GivesTheErrorsOfThePrediction) {
  const Outcome outcome =
      call(tools::run_compare, {"1f1b,gpipe", "--pp", "2", "-m", "2", "--backend", "cpu", "--steps",
                                "1", "--format", "json"});
  EXPECT_EQ(outcome.status, 0);
  const Json comparison = outcome.json();
  EXPECT_EQ(comparison["reports"].size(), 2u);
  for (const char* key :
       {"makespan", "bubble_ratio", "op_start_p50", "op_start_p95", "peak_memory"}) {
    EXPECT_TRUE(comparison["error"][key].is_number()) << key;
    EXPECT_TRUE(comparison["reports"][0]["error"][key].is_number()) << key;
  }
  EXPECT_EQ(comparison["reports"][0]["predicted"]["source"], "simulated");
  EXPECT_EQ(comparison["error"]["peak_memory"], 0);
  const Outcome text =
      call(tools::run_compare, {"1f1b", "--pp", "2", "-m", "2", "--backend", "cpu"});
  EXPECT_NE(text.output.find("measured"), std::string::npos);
}

TEST(CompareCommand, ATransformerIsCalibratedBesideTheSchedules) {
  const TemporaryFile results("results.jsonl");
  tools::Arguments arguments = small_transformer(
      {"1f1b,zb-h1,zb-v", "--pp", "2", "-m", "4", "--results", results.path(), "--format", "json"});
  arguments.back() = "4";  // steps
  const Outcome outcome = call(tools::run_compare, arguments);
  EXPECT_EQ(outcome.status, 0);
  const Json comparison = outcome.json();
  EXPECT_EQ(comparison["gradients_match"], true);
  ASSERT_EQ(comparison["reports"].size(), 3u);
  for (const Json& report : comparison["reports"]) {
    ASSERT_EQ(report["makespans_ns"].size(), 4u);
    EXPECT_TRUE(report["within_spread"].is_boolean());
    // Two blocks of two steps, whose median is the lower one.
    const auto steps = report["makespans_ns"].get<std::vector<Nanos>>();
    const Nanos drift = std::min(steps[0], steps[1]) - std::min(steps[2], steps[3]);
    EXPECT_EQ(report["step_spread"]["drift_ns"], std::abs(drift));
    // The prediction is that of measured costs, not of the default, 1 ms per op.
    const std::string name = report["schedule"].get<std::string>();
    const Outcome usual =
        call(tools::run_simulate, {name, "--pp", "2", "-m", "4", "--format", "json"});
    EXPECT_GT(report["predicted"]["makespan_ns"].get<Nanos>(), 0);
    EXPECT_NE(report["predicted"]["makespan_ns"], usual.json()["makespan_ns"]);
  }
  std::ifstream file(results.path());
  std::vector<std::string> schedules;
  for (std::string line; std::getline(file, line);)
    schedules.push_back(Json::parse(line)["schedule"].get<std::string>());
  EXPECT_EQ(schedules, (std::vector<std::string>{"1f1b", "zb-h1", "zb-v"}));
}

TEST(CompareCommand, ShapesOfSeveralSizesNeedACostFile) {
  EXPECT_EQ(error_of([&] {
              tools::run_compare(small_transformer({"1f1b", "--shapes", "2x2,2x4"}));
            }),
            "nothing is known of what a transformer's ops cost here; measure it: 'bubblescope "
            "calibrate --pp 2 -m 8 -o costs.json', with the flags of the transformer, then "
            "--costs costs.json");
}

TEST(CalibrateCommand, WritesCostsThatPredict) {
  const TemporaryFile costs("costs.json");
  EXPECT_EQ(
      call(tools::run_calibrate, small_transformer({"--pp", "2", "-m", "4", "-o", costs.path()}))
          .status,
      0);
  std::ifstream file(costs.path());
  const Json written = Json::parse(file);
  EXPECT_EQ(written["stages"].size(), 2u);
  EXPECT_GT(written["measured"]["stages"][0]["forward"]["samples"].get<int>(), 0);
  const Outcome outcome =
      call(tools::run_compare, small_transformer({"1f1b,zb-h1", "--pp", "2", "-m", "3", "--costs",
                                                  costs.path(), "--format", "json"}));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.json()["gradients_match"], true);
  EXPECT_LT(outcome.json()["error"]["peak_memory"].get<double>(), 0.02);
}

TEST(SimulateCommand, UnderstandsInjectedDelays) {
  const auto makespan = [](const tools::Arguments& inject) {
    tools::Arguments arguments{"gpipe", "--pp", "2", "-m", "2", "--format", "json"};
    arguments.insert(arguments.end(), inject.begin(), inject.end());
    return call(tools::run_simulate, arguments).json()["makespan_ns"].get<Nanos>();
  };
  EXPECT_EQ(makespan({"--inject", "rank=0,op=0F1,delay=5ms"}) - makespan({}), 5'000'000);
}

}  // namespace
}  // namespace bubblescope::tests
