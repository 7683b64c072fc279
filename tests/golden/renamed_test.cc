// Renamed flags and keys are still accepted and printed under their old names.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

struct Renamed {
  const char* command;  ///< without the flag
  std::string name;
  std::string old_name;
  std::string value;  ///< with the sign before it; empty: the flag has none
};

const Renamed kFlags[] = {
    {"simulate 1f1b --pp 4 -m 8 --seeds 20 --format json", "--length-jitter", "--ragged", " 10%"},
    {"simulate 1f1b --pp 4 -m 8 --seeds 20 --format json", "--length-jitter", "--ragged", "=10%"},
    {"simulate 1f1b --pp 4 -m 8 --recompute full --format json", "--saved-fraction", "--kept",
     " 0.25"},
    {"simulate 1f1b --pp 4 -m 8 --model gpt3-1.3b --tp 2 --format json", "--reserve-memory",
     "--keep-free", " 4GiB"},
    {"simulate 1f1b --pp 4 -m 8 --model gpt3-1.3b --tp 2 --format json", "--save-scores",
     "--keep-scores", ""},
};

TEST(RenamedFlags, GiveTheSameOutputUnderBothNames) {
  for (const Renamed& flag : kFlags) {
    const std::string command = std::string(flag.command) + " ";
    const CommandOutcome now = run_command(command + flag.name + flag.value);
    const CommandOutcome before = run_command(command + flag.old_name + flag.value);
    EXPECT_EQ(now.status, 0) << command << flag.name;
    EXPECT_EQ(before.status, 0) << command << flag.old_name;
    EXPECT_EQ(now.output, before.output) << flag.old_name;
    EXPECT_NE(now.output, run_command(command).output) << flag.name << " changes nothing";
  }
}

TEST(RenamedFlags, AreRefusedUnderBothNamesAtOnce) {
  for (const Renamed& flag : kFlags) {
    if (flag.value.empty()) continue;  // a flag without a value may be repeated
    const CommandOutcome both = run_with_messages(std::string(flag.command) + " " + flag.name +
                                                  flag.value + " " + flag.old_name + flag.value);
    EXPECT_EQ(both.status, 2) << both.output;
    EXPECT_NE(both.output.find(flag.name), std::string::npos) << both.output;
  }
}

// Without verification nothing says whether the gradients match.
TEST(RenamedFlags, VerificationIsSkippedUnderBothNames) {
  for (const char* flag : {"--no-verify", "--no-proof"}) {
    const Json run = read_report(
        std::string("run 1f1b --pp 2 -m 2 --backend cpu --work transformer --steps 1 --hidden-size "
                    "8 --seq-length 4 ") +
        flag);
    EXPECT_TRUE(run["gradients_match"].is_null()) << flag;
  }
}

TEST(RenamedFlags, AreInHelpUnderTheirNewNamesOnly) {
  const Renamed commands[] = {
      {"simulate", "--length-jitter", "--ragged", ""},
      {"simulate", "--saved-fraction", "--kept", ""},
      {"simulate", "--reserve-memory", "--keep-free", ""},
      {"simulate", "--save-scores", "--keep-scores", ""},
      {"run", "--no-verify", "--no-proof", ""},
      {"calibrate", "--no-contention", "--no-company", ""},
  };
  for (const Renamed& flag : commands) {
    const std::string help = run_command(std::string(flag.command) + " --help").output;
    EXPECT_NE(help.find(flag.name), std::string::npos) << flag.name;
    EXPECT_EQ(help.find(flag.old_name), std::string::npos) << flag.old_name;
  }
}

TEST(RenamedFlags, CalibrateOmitsContentionUnderBothNames) {
  for (const char* flag : {"--no-contention", "--no-company"}) {
    const CommandOutcome outcome = run_command(
        std::string("calibrate 1f1b --pp 2 -m 2 --backend cpu --work sleep --steps 1 ") + flag);
    ASSERT_EQ(outcome.status, 0) << flag;
    EXPECT_FALSE(Json::parse(outcome.output)["stages"][0].contains("contended")) << flag;
  }
}

TEST(RenamedKeys, ArePrintedUnderBothNames) {
  const Json plan = read_report("plan --schedules gpipe,1f1b,zb-h1 --pp 4 -m 8");
  ASSERT_FALSE(plan["break_even"].empty()) << plan.dump(1);
  for (const Json& found : plan["break_even"]) EXPECT_EQ(found["runner_up"], found["rival"]);
  const Json run = read_report(
      "run 1f1b --pp 2 -m 2 --backend cpu --work transformer --steps 1 --hidden-size 8 "
      "--seq-length 4");
  EXPECT_TRUE(run["verification"].is_string()) << run.dump(1);
  EXPECT_EQ(run["verification"], run["proof"]);
  const Json comparison = read_report("compare 1f1b,gpipe --pp 2 -m 2 --backend cpu --steps 1");
  const std::string text = comparison.dump();
  EXPECT_NE(text.find("\"first_divergence\":"), std::string::npos) << text;
  EXPECT_NE(text.find("\"parting\":"), std::string::npos) << text;
}

}  // namespace
}  // namespace bubblescope::tests
