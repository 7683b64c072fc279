// One rule for all commands: 2 for flags that a schedule or a model takes in no shape, that
// contradict each other or that exceed a limit of the program; 1 for what could be asked and cannot
// be: a shape that the schedule refuses, a framework that lacks it, a model that it does not
// divide.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

struct Asked {
  const char* schedule;  ///< with its shape
  int status;
  const char* says;
};

constexpr Asked kAsked[] = {
    {"chimera --pp 3 -m 4", 1, "with an odd --pp both directions use the same slot"},
    {"dualpipe --pp 5 -m 10", 1, "--pp must be even"},
    {"interleaved --pp 4 --vpp 2 -m 6 --profile megatron", 1, "leaves a last group of 2"},
    {"gems --pp 4 -m 4 --profile megatron", 1, "megatron has no such schedule"},
    {"hanayo --pp 3 -m 6 --vpp 3", 2, "--vpp must be a multiple of the 2 chunks of hanayo"},
    {"bpipe --pp 4 -m 8 --offload 1", 2, "bpipe evicts already; leave --offload out"},
    {"forward-only --pp 4 -m 8 --recompute full", 2, "leave --recompute out"},
    {"interleaved --pp 4 --vpp 2 -m 8 --layout 'Et|t|tL'", 2, "which 4 ranks cannot share evenly"},
    {"1f1b --pp 65536 -m 65536", 2, "the limit is 100000000"},
    {"1f1b --pp 4 -m 0", 2, "-m: '0' is not a whole number"},
};

const std::vector<std::string> kCommands = {"simulate ", "check ", "compare ", "convert --to text ",
                                            "run --work sleep "};

TEST(ExitStatuses, AreTheSameForEveryCommand) {
  for (const Asked& asked : kAsked)
    for (const std::string& command : kCommands) {
      const CommandOutcome outcome = run_with_messages(command + asked.schedule);
      EXPECT_EQ(outcome.status, asked.status) << command << asked.schedule;
      EXPECT_NE(outcome.output.find(asked.says), std::string::npos)
          << command << asked.schedule << "\n"
          << outcome.output;
    }
}

TEST(ExitStatuses, OfModelsFollowTheSameRule) {
  constexpr Asked kModels[] = {
      {"1f1b --pp 8 -m 8 --model llama3-8b --tp 3", 1, "--tp 3 does not divide the model's heads"},
      {"1f1b --pp 64 -m 8 --model llama3-8b", 1, "make at most 34 stages, not 64"},
      {"1f1b --pp 4 -m 8 --model llama3-8b --ep 2", 2, "the model has no experts; leave --ep out"},
      {"1f1b --pp 4 --model llama3-8b --global-batch-size 7 --dp 2", 2, "is not a multiple of"},
      {"1f1b --pp 4 -m 8 --model llama3-8b --gpu a100 --precision fp8", 2, "no 8-bit GEMMs"},
  };
  for (const Asked& asked : kModels)
    for (const char* command : {"simulate ", "compare "}) {
      const CommandOutcome outcome = run_with_messages(command + std::string(asked.schedule));
      EXPECT_EQ(outcome.status, asked.status) << command << asked.schedule;
      EXPECT_NE(outcome.output.find(asked.says), std::string::npos) << outcome.output;
    }
}

// An example is one of the command that was given, so that it can be copied.
TEST(ExitStatuses, ExamplesNameTheCommandAtHand) {
  for (const std::string& command : kCommands) {
    const std::string output = run_with_messages(command + "1f1b").output;
    const std::string word = command.substr(0, command.find(' '));
    EXPECT_NE(output.find("'bubblescope " + word), std::string::npos) << output;
    EXPECT_EQ(output.find("'bubblescope simulate") == std::string::npos, word != "simulate")
        << output;
  }
  for (const char* command : {"check 1f1b --pp 4", "calibrate 1f1b", "calibrate --pp 2"}) {
    const CommandOutcome outcome = run_with_messages(command);
    const std::string word = std::string(command).substr(0, std::string(command).find(' '));
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find("'bubblescope " + word + " 1f1b --pp 4 -m 8'"), std::string::npos)
        << outcome.output;
  }
  const std::string convert = run_with_messages("convert 1f1b --pp 4 --to text").output;
  EXPECT_NE(convert.find("'bubblescope convert --to text 1f1b --pp 4 -m 8'"), std::string::npos)
      << convert;
}

}  // namespace
}  // namespace bubblescope::tests
