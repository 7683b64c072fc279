// Refusals and notes name what was given, and what is wrong with it.
#include <gtest/gtest.h>

#include <fstream>
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

/// Expects exit status 2, that of bad usage, with this text.
void expect_usage(const std::string& command, const std::string& text) {
  const CommandOutcome outcome = run_with_messages(command);
  EXPECT_EQ(outcome.status, 2) << command;
  EXPECT_NE(outcome.output.find(text), std::string::npos) << command << "\n" << outcome.output;
}

const std::string kStep = "simulate 1f1b --pp 4 -m 8 ";
const std::string kModel = kStep + "--model llama3-8b ";

TEST(PreciseRefusals, NameTheFlagThatWasGiven) {
  expect_says("simulate 1f1b --pp 4 -m 1e3", "-m: '1e3' is not a whole number from 1 to ");
  expect_says("simulate 1f1b --pp 4 --microbatches=0", "--microbatches: '0' is not a whole number");
  expect_says("plan --pp 4 -m 8-32", "-m: '8-32' is not a list of numbers");
  expect_says(kStep + "--recompute some", "--recompute: 'some' is not one of ");
  expect_says(kStep + "--recompute-granularity some", "--recompute-granularity: 'some' is not");
  expect_says(kModel + "--seq-length 8k", "--seq-length: '8k' is not a whole number from 1 to ");
  expect_says(kModel + "--f 2 --p2p 1", "--model gives all costs; leave out --f, --p2p\n");
  expect_says(kModel + "--costs none.json", "--model gives all costs; leave out --costs\n");
  expect_says(kModel + "--reserve-memory much", "--reserve-memory: 'much' is not a size");
  expect_says(kModel + "--reserve-memory=-5%", "--reserve-memory: -5% is below zero");
  expect_says(kModel + "--assume none=1", "--assume: no assumption is called 'none'");
  expect_says(kStep + "--max-input little", "--max-input: 'little' is not a size");
  expect_says(kStep + "--lose rank=0 --replicas 65536",
              "--lose: the job has 262144 ranks, the limit is 65536; give fewer --replicas");
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

TEST(PreciseRefusals, AreOfBadUsageForFlagsThatAScheduleNeverTakes) {
  for (const char* command : {"simulate", "check"}) {
    const std::string step = std::string(command) + " ";
    expect_usage(step +
                     "v-half-vocab --pp 4 -m 8 --output-layer 1 --p2p-mode fifo --lowering "
                     "deferred",
                 "--lowering deferred needs stages in a chain");
    expect_usage(step + "zb-v --pp 4 -m 8 --vpp 3", "zb-v always has 2 chunks per rank");
  }
  expect_usage(kStep + "--replicas 2", "1f1b has one rank for every stage; leave --replicas out");
  expect_usage(kStep + "--slices 2", "1f1b does not slice sequences; leave --slices out");
  // A shape that the schedule cannot have is a problem of the schedule.
  EXPECT_EQ(run_with_messages("simulate chimera --pp 3 -m 8").status, 1);
  EXPECT_EQ(run_with_messages("check chimera --pp 3 -m 8").status, 1);
}

TEST(PreciseRefusals, HoldForAStatedOneAsForOtherNumbers) {
  for (const char* command : {"simulate", "check", "convert --to text"})
    for (const char* name : {"zb-v", "dualpipev"})
      expect_usage(std::string(command) + " " + name + " --pp 4 -m 8 --vpp 1",
                   std::string(name) + " always has 2 chunks per rank; leave --vpp out");
  expect_usage("simulate hanayo --pp 4 -m 8 --vpp 1", "--vpp must be a multiple of the 2 chunks");
  expect_usage("compare hanayo --shapes 4x8x1", "--vpp must be a multiple of the 2 chunks");
  expect_usage("simulate chimera-halving --pp 4 -m 8 --slices 1", "always has 2 slices");
  expect_says("compare zb-v --shapes 4x8x1",
              "the chunks of --shapes 4x8x1 change nothing: none of these schedules takes them");
  EXPECT_EQ(run_with_messages("simulate 1f1b --pp 4 -m 8 --vpp 1 --slices 1").status, 0);
}

TEST(PreciseRefusals, NameSizesThatShapesGiveAgain) {
  expect_usage("compare 1f1b --shapes 2x4 --pp 8 -m 3", "--shapes gives the shapes, PPxM or");
  expect_usage("compare 1f1b --shapes 2x4 --pp 8 -m 3", "leave out --pp, -m\n");
  expect_usage("compare interleaved --shapes 2x4x2 --vpp 3", "leave out --vpp\n");
}

TEST(PreciseRefusals, HaveTheSameStatusInCompare) {
  const std::string arrivals = ::testing::TempDir() + "three_arrivals";
  std::ofstream(arrivals) << "0 1 2";
  for (const char* command : {"simulate", "compare"})
    expect_usage(std::string(command) + " 1f1b --pp 2 -m 4 --arrivals " + arrivals, "arrivals");
}

TEST(PreciseRefusals, HaveOneMessageForOneCause) {
  const std::string lengths = ::testing::TempDir() + "two_lengths";
  std::ofstream(lengths) << "2048 2048";
  const std::string said = run_with_messages(kStep + "--lengths " + lengths).output;
  EXPECT_NE(said.find("--lengths needs --model"), std::string::npos) << said;
  EXPECT_EQ(said.find("changes nothing"), std::string::npos) << said;
}

TEST(PreciseRefusals, OfPoliciesNameNoFlagThatWasNotGiven) {
  const std::string lists = ::testing::TempDir() + "lists.csv";
  run_command("convert 1f1b --pp 4 -m 8 --to pytorch-csv-comms -o " + lists);
  const std::string said = run_with_messages("simulate " + lists + " --policy ready").output;
  EXPECT_NE(said.find("give its order without them"), std::string::npos) << said;
  EXPECT_EQ(said.find("--fsdp"), std::string::npos) << said;
}

TEST(PreciseRefusals, OfAnOrderOfPartsNeedNoPairs) {
  for (const char* schedule : {"1f1b", "dualpipev"})
    expect_usage("simulate " + std::string(schedule) +
                     " --pp 4 -m 8 --model llama3-8b --tp 2 --parts F.attn,B.attn",
                 "lacks F.attn_reduce, F.mlp, F.mlp_reduce");
  expect_says(kModel + "--tp 2 --parts megatron",
              "the order of --parts changes nothing: no op of the step is in an overlapped pair");
  const std::string paired = run_with_messages(
                                 "simulate dualpipev --pp 4 -m 8 --model llama3-8b --tp 2 --parts "
                                 "megatron")
                                 .output;
  EXPECT_EQ(paired.find("the order of --parts"), std::string::npos) << paired;
}

TEST(PreciseRefusals, SayThatTimesOfWhatIsAbsentChangeNothing) {
  const std::string costs = ::testing::TempDir() + "pair_costs.json";
  std::ofstream(costs) << R"({"format": "bubblescope-costs/1", "forward": 1, "backward": 2,
                              "overlapped_pair": 4})";
  expect_says(kStep + "--costs " + costs, "'overlapped_pair' of --costs changes nothing: no op");
  expect_says(kStep + "--p2p-jitter 5%", "--p2p-jitter changes nothing: messages take no time");
  const std::string forward = "simulate forward-only --pp 2 -m 4 ";
  for (const char* flag : {"--b", "--i", "--w"})
    expect_says(forward + flag + " 5", std::string(flag) + " changes nothing: the step has no ");
  expect_says(forward + "--b 5 --i 3", "--i changes nothing: the step has no backward\n");
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
  expect_says("compare zb-v,1f1b --pp 2 -m 8 --model llama3-70b",
              "vs best: no row fits, so that the best is the fastest of all");
}

// Stating no offload is offloading nothing, in the report as well.
TEST(PreciseRefusals, OffloadNothingWithAShareOfZero) {
  EXPECT_EQ(run_command(kModel + "--tp 2 --dp 2 --format json").output,
            run_command(kModel + "--tp 2 --dp 2 --offload 0 --format json").output);
}

/// The names of all flags, and the flags that the help mentions.
TEST(PreciseRefusals, HoldNoLessThanNothing) {
  for (const char* step :
       {"search --pp 1 -m 1", "simulate zb-auto --pp 1 -m 1", "plan --pp 1 -m 1"})
    expect_usage(std::string(step) + " --mem=-1,0,1", "gives back no more than that");
  expect_usage("simulate v-auto --pp 2 -m 4 --mem=1,-2,1", "gives back no more than that");
}

// Sizes are refused before anything is computed, and what is written can be read back.
TEST(PreciseRefusals, CountTheStagesOfAShape) {
  expect_usage("search --pp 65536 --vpp 1024 -m 2", "67108864 stages, the limit is 131072");
  const std::string file = testing::TempDir() + "interleaved.json";
  EXPECT_EQ(
      run_command("convert interleaved --pp 40000 --vpp 2 -m 1 --to native -o " + file).status, 0);
  EXPECT_EQ(run_command("check " + file).status, 0);
}

TEST(PreciseRefusals, BoundTheShapesOfEveryFlag) {
  for (const char* shapes : {"2x4,0x1", "70000x1", "2x4x5000", "2x20000000", "2x4x1x1", "2"})
    expect_usage(std::string("compare gpipe --shapes ") + shapes, "is not a shape; write PPxM");
  expect_usage("plan --pp 2 -m 4 --vpp 2000", "--vpp 2000 is more than the 1024 chunks");
}

TEST(PreciseRefusals, NameTheLoss) {
  const std::string step = "simulate 1f1b --pp 2 -m 4 --replicas 2 --lose rank=0,";
  expect_usage(step + "at=-1", "--lose: ");
  expect_usage(step + "detect=1", "--lose: detect= is the time from the loss");
  expect_usage(step + "rank=1", "--lose: ");
}

// The table of all schedules was empty, and the exit status 0.
TEST(PreciseRefusals, EndAComparisonWhoseFlagsContradictEachOther) {
  const std::string all = "compare all --pp 4 -m 8 --model llama3-8b ";
  expect_usage(all + "--recompute full,none", "give --recompute one entry");
}

// A NUL ended the message.
TEST(PreciseRefusals, ShowAllOfWhatTheyQuote) {
  const std::string file = testing::TempDir() + "arrivals.txt";
  std::ofstream(file, std::ios::binary) << std::string("1\0002", 3);
  expect_usage("simulate 1f1b --pp 2 --arrivals " + file, R"('1\x002' is not a duration)");
}

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
