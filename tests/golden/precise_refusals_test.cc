// Refusals and notes name what was given, and what is wrong with it.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

void expect_says(const std::string& command, const std::string& text) {
  const std::string output = run_with_messages(command).output;
  EXPECT_NE(output.find(text), std::string::npos) << command << "\n" << output;
}

const std::string kStep = "simulate 1f1b --pp 4 -m 8 ";
const std::string kModel = kStep + "--model llama3-8b ";

TEST(PreciseRefusals, NameTheFlagThatWasGiven) {
  expect_says("simulate 1f1b --pp 4 -m 1e3", "-m: '1e3' is not a whole number from 1 to ");
  expect_says("simulate 1f1b --pp 4 --microbatches=0", "--microbatches: '0' is not a whole number");
  expect_says(kModel + "--seq-length 8k", "--seq-length: '8k' is not a whole number from 1 to ");
  expect_says(kModel + "--f 2 --p2p 1", "--model gives all costs; leave out --f, --p2p\n");
  expect_says(kModel + "--costs none.json", "--model gives all costs; leave out --costs\n");
}

TEST(PreciseRefusals, NameTheFault) {
  expect_says(kStep + "--cap 70gib", "'70gib' is not a size; write the unit as GiB");
  expect_says(kModel + "--layout 'Et*8|t*8|t*8|t*8mL'",
              "the model has no layer for multi-token prediction (m); leave m out");
  const std::string deepseek = "simulate 1f1b --pp 2 -m 8 --model deepseek-v3 --layout ";
  expect_says(deepseek + "'Et*30|t*31mmL'", "the layout has 2 m, and the model 1;");
  expect_says("simulate 1f1b --pp 3 -m 8 --model deepseek-v3 --layout 'Et*30|t*31m|L'",
              "m is on the last stage; write it there");
  expect_says("list model", "did you mean 'models'?");
  expect_says(kStep + "--vpp 2", "1f1b always has 1 chunk per rank");
  expect_says(kStep + "--offload 0", "--offload changes nothing: its share is 0");
}

TEST(PreciseRefusals, KeepRatesBelowThePeak) {
  expect_says(kModel + "--assume sustained_teraflops=100000",
              "100000 is more than the device's peak; give at most 989");
  expect_says(kModel + "--assume attention_forward=20", "it is a fraction of the device's peak");
}

TEST(PreciseRefusals, NameTheBuffersThatAreTooLarge) {
  expect_says(kModel + "--micro-batch-size 2048", "512.0 of buffers");
  expect_says(kModel + "--micro-batch-size 2048", "the buffers alone are too large");
}

TEST(PreciseRefusals, SendModelsToTheCommandThatTakesThem) {
  for (const char* command : {"check 1f1b", "convert 1f1b --to text"})
    expect_says(std::string(command) + " --pp 4 -m 8 --model llama3-8b",
                " looks at orders, which --model does not change; 'bubblescope simulate --model'");
}

TEST(PreciseRefusals, SayWhatASearchLeavesOut) {
  expect_says("search --pp 2 -m 4 --effort 3000 --tp 8 --dp 8 --model llama3-8b",
              "the step of a search ends with its gradients");
}

TEST(PreciseRefusals, ExplainRowsThatAreFasterThanTheBest) {
  const std::string run = "compare zb-v,dualpipe --pp 8 -m 32 --model llama3-70b --tp 4";
  expect_says(run, "vs best: the best is that of the rows that fit");
  EXPECT_EQ(run_command("compare zb-v,1f1b --pp 8 -m 32").output.find("vs best:"),
            std::string::npos);
}

// Stating no offload is offloading nothing, in the report as well.
TEST(PreciseRefusals, OffloadNothingWithAShareOfZero) {
  EXPECT_EQ(run_command(kModel + "--tp 2 --dp 2 --format json").output,
            run_command(kModel + "--tp 2 --dp 2 --offload 0 --format json").output);
}

/// The names of all flags, and the flags that the help mentions.
struct HelpFlags {
  std::set<std::string> known;
  std::set<std::string> mentioned;

  explicit HelpFlags(const std::string& command) {
    static const std::regex word(R"((^|[^\w-])(--[a-z][a-z0-9-]*))");
    const std::string help = run_command(command + " --help").output;
    const std::string flags = help.substr(0, help.find("\nexample"));
    for (std::sregex_iterator at(flags.begin(), flags.end(), word), end; at != end; ++at)
      mentioned.insert((*at)[2]);
    static const std::regex listed(R"(\n  (-\S+))");
    for (std::sregex_iterator at(flags.begin(), flags.end(), listed), end; at != end; ++at) {
      const std::string names = (*at)[1];
      for (std::sregex_iterator name(names.begin(), names.end(), word); name != end; ++name)
        known.insert((*name)[2]);
    }
  }
};

// The help of convert spoke of --model, which it does not take.
TEST(PreciseRefusals, LetHelpMentionOnlyFlagsThatAreThere) {
  for (const char* command : {"convert", "check"}) {
    const HelpFlags flags(command);
    for (const std::string& flag : flags.mentioned)
      EXPECT_TRUE(flags.known.contains(flag)) << command << " " << flag;
  }
}

}  // namespace
}  // namespace bubblescope::tests
