// The flags of outputs that are held until their sends end, and of weights that are gathered ahead.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;
using Words = tools::Arguments;

class HeldMemoryCommand : public TemporaryFolder {
 protected:
  /// Two stages with activations of 10 MB and messages of 1 MB that take a tenth of a forward.
  std::string costs() const {
    std::ofstream(path("costs.json"))
        << R"({"format": "bubblescope-costs/1", "forward": 1, "backward": 2,
               "activation_bytes": {"saved": 10000000}, "message": {"bytes": 1000000, "bandwidth_gbps": 80},
               "weight_bytes": 4000000})";
    return path("costs.json");
  }

  /// The message of a command line that is refused.
  static std::string refusal_of(const Words& words) {
    std::string line = "simulate";
    for (const std::string& word : words) line += " " + word;
    const CommandOutcome outcome = run_with_messages(line);
    return outcome.status == 2 ? outcome.output : "accepted";
  }

  static Words gpipe(const std::string& costs, const Words& more = {}) {
    Words words{"gpipe", "--pp", "2", "-m", "4", "--costs", costs};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

// GPipe with four micro-batches: rank 0 holds four activations and, without a limit, four outputs.
TEST_F(HeldMemoryCommand, AddsOutputsToThePeaksOfTheReport) {
  const Json none = read_report(tools::run_simulate, gpipe(costs(), {"--send-budget", "none"}));
  EXPECT_EQ(none["ranks"][0]["peak_outputs"], 4);
  EXPECT_EQ(none["ranks"][0]["peak_output_bytes"], 4'000'000);
  EXPECT_EQ(none["ranks"][0]["peak_memory_bytes"], 44'000'000);
  EXPECT_EQ(none["made_with"]["send_budget"], "none");
  const Json one = read_report(tools::run_simulate, gpipe(costs(), {"--send-budget", "1"}));
  EXPECT_EQ(one["ranks"][0]["peak_outputs"], 2) << "the one that is sent, and the next one";
  EXPECT_EQ(one["ranks"][0]["peak_memory_bytes"], 42'000'000);
  EXPECT_EQ(one["makespan_ns"], none["makespan_ns"]);
  EXPECT_EQ(one["made_with"]["send_budget"], "1");
}

// A pair makes two outputs at once, before the rank waits for the sends that make room for them.
TEST_F(HeldMemoryCommand, HoldsOneMoreThanTheBudgetAndTwoWithPairs) {
  const auto most = [](const char* schedule, int budget) {
    std::int64_t outputs = 0;
    const Json report = read_report(
        tools::run_simulate,
        {schedule, "--pp", "2", "-m", "6", "--p2p", "1", "--send-budget", std::to_string(budget)});
    for (const Json& rank : report["ranks"])
      outputs = std::max(outputs, rank["peak_outputs"].get<std::int64_t>());
    return outputs;
  };
  for (const int budget : {1, 2, 3}) {
    EXPECT_EQ(most("dualpipev", budget), budget + 2);
    EXPECT_LE(most("interleaved", budget), budget + 1);
  }
}

TEST_F(HeldMemoryCommand, CountsNothingUnlessAsked) {
  const Json plain = read_report(tools::run_simulate, gpipe(costs()));
  EXPECT_FALSE(plain["ranks"][0].contains("peak_outputs"));
  EXPECT_FALSE(plain["ranks"][0].contains("peak_gathered_stages"));
  EXPECT_FALSE(plain["made_with"].contains("send_budget"));
  EXPECT_EQ(plain["ranks"][0]["peak_memory_bytes"], 40'000'000);
}

TEST_F(HeldMemoryCommand, HoldsACapInBytesAgainstOutputsToo) {
  const auto status = [&](const char* budget) {
    return call_command(tools::run_simulate,
                        gpipe(costs(), {"--cap", "42MB", "--send-budget", budget}))
        .status;
  };
  EXPECT_EQ(status("1"), 0);
  EXPECT_EQ(status("2"), 1);
  EXPECT_EQ(
      call_command(tools::run_simulate, gpipe(costs(), {"--cap", "4", "--send-budget", "none"}))
          .status,
      0)
      << "a cap in units is about activations";
}

TEST_F(HeldMemoryCommand, SaysWhichRankHoldsMost) {
  const std::string text =
      call_command(tools::run_simulate, gpipe(costs(), {"--send-budget", "2"})).output;
  EXPECT_NE(
      text.find("outputs      rank 0 holds up to 3 until their sends end, 2.86 MiB; with a send "
                "budget of 2\n"),
      std::string::npos)
      << text;
}

TEST_F(HeldMemoryCommand, ReadsASavedStepBackWithTheSameTimes) {
  const std::string saved = path("step.json");
  const Json before =
      read_report(tools::run_simulate, gpipe(costs(), {"--send-budget", "1", "--save", saved}));
  const Json after = read_report(tools::run_analyze, {saved});
  EXPECT_EQ(after["makespan_ns"], before["makespan_ns"]);
  const std::string trace = path("trace.json");
  read_report(tools::run_simulate, gpipe(costs(), {"--send-budget", "1", "--trace", trace}));
  const Json traced = read_report(tools::run_analyze, {trace});
  EXPECT_EQ(traced["makespan_ns"], before["makespan_ns"]);
}

TEST_F(HeldMemoryCommand, RefusesWhatCannotBe) {
  EXPECT_NE(refusal_of(gpipe(costs(), {"--send-budget", "0"}))
                .find("--send-budget: '0' is not a number of sends from 1 on"),
            std::string::npos);
  EXPECT_NE(refusal_of(gpipe(costs(), {"--unshard-lookahead", "2"})).find("add --fsdp"),
            std::string::npos);
  EXPECT_NE(refusal_of(gpipe(costs(), {"--fsdp", "--unshard-lookahead", "4"})).find("not in 1..3"),
            std::string::npos);
  EXPECT_NE(refusal_of(gpipe(costs(), {"--send-budget", "1", "--policy", "ready"}))
                .find("leave --send-budget out"),
            std::string::npos);
}

// Four stages of 4 MB per rank: with a lookahead of one, three are gathered in the end, as with
// "full", because a rank keeps three.
TEST_F(HeldMemoryCommand, CountsGatheredWeights) {
  const Words words{"interleaved", "--pp", "2",       "--vpp", "4",
                    "-m",          "4",    "--costs", costs(), "--fsdp"};
  const auto with = [&](const char* lookahead) {
    Words more = words;
    more.insert(more.end(), {"--unshard-lookahead", lookahead});
    return read_report(tools::run_simulate, more);
  };
  for (const char* lookahead : {"1", "auto", "full", "2,3"}) {
    const Json rank = with(lookahead)["ranks"][0];
    EXPECT_LE(rank["peak_gathered_stages"], 3) << lookahead;
    EXPECT_EQ(rank["peak_gathered_bytes"],
              4'000'000 * rank["peak_gathered_stages"].get<std::int64_t>())
        << lookahead;
  }
}

// ZeRO stage 3 shards the weights, which UNSHARDs gather whether or not a lookahead is given; the
// order moves them once, where each op of a micro-batch would gather them again.
TEST_F(HeldMemoryCommand, CountsWhatAModelGathers) {
  const auto with = [&](const Words& more) {
    Words words{"1f1b", "--pp", "4",    "-m", "16",       "--model",          "llama3-8b",
                "--tp", "2",    "--dp", "16", "--layout", "Et*8|t*8|t*8|t*8L"};
    words.insert(words.end(), more.begin(), more.end());
    return read_report(tools::run_simulate, words);
  };
  const Json sharded = with({"--zero", "3"});
  const Json ordered = with({"--zero", "3", "--fsdp"});
  EXPECT_FALSE(sharded["ranks"][0].contains("peak_gathered_bytes"));
  EXPECT_GT(ordered["ranks"][1]["peak_gathered_bytes"], std::int64_t{1} << 30);
  EXPECT_GT(ordered["ranks"][1]["peak_memory_bytes"], sharded["ranks"][1]["peak_memory_bytes"]);
  EXPECT_LT(ordered["makespan_ns"], sharded["makespan_ns"]);
  EXPECT_TRUE(ordered["interval"].is_null());
  EXPECT_EQ(ordered["no_interval"],
            "no published run has been compared with a prediction that has collectives in the "
            "order of its ops");
  const Json whole = with({"--zero", "1", "--fsdp"});
  EXPECT_FALSE(whole["ranks"][1].contains("peak_gathered_bytes"));
  EXPECT_LT(whole["makespan_ns"], ordered["makespan_ns"]) << "nothing is gathered";
}

// The messages of a model are as long as its activations between layers: sequence times hidden size
// times two bytes, here 8192 * 4096 * 2 = 64 MiB.
TEST_F(HeldMemoryCommand, KnowsTheMessagesOfAModel) {
  const Words words{"1f1b", "--pp", "4", "-m", "8", "--model", "llama3-8b", "--gpu", "h100"};
  const auto with = [&](const char* budget) {
    Words more = words;
    more.insert(more.end(), {"--send-budget", budget});
    return read_report(tools::run_simulate, more);
  };
  const Json one = with("1");
  const Json none = with("none");
  EXPECT_EQ(one["ranks"][0]["peak_output_bytes"],
            one["ranks"][0]["peak_outputs"].get<std::int64_t>() * 64 * 1024 * 1024);
  EXPECT_EQ(none["ranks"][3]["peak_outputs"], 8) << "gradients until the step's end";
  EXPECT_GT(none["ranks"][3]["peak_memory_bytes"], one["ranks"][3]["peak_memory_bytes"]);
}

TEST_F(HeldMemoryCommand, IsAnAxisOfAModelsPlan) {
  const Json plan = read_report(tools::run_plan, {"--model",
                                                  "llama3-8b",
                                                  "--gpu",
                                                  "h100",
                                                  "--gpus",
                                                  "16",
                                                  "--global-batch-size",
                                                  "32",
                                                  "--tp",
                                                  "2",
                                                  "--pp",
                                                  "4",
                                                  "--micro-batch-size",
                                                  "1",
                                                  "--recompute",
                                                  "none",
                                                  "--schedules",
                                                  "1f1b",
                                                  "--split",
                                                  "even",
                                                  "--vpp",
                                                  "1",
                                                  "--send-budget",
                                                  "1,none"});
  ASSERT_EQ(plan["plans"].size(), 2);
  Json bytes;
  for (const Json& row : plan["plans"]) bytes[row["send_budget"].dump()] = row["peak_memory_bytes"];
  EXPECT_GT(bytes["\"none\""], bytes["1"]);
}

TEST_F(HeldMemoryCommand, WritesTheListsOfPytorchsOptions) {
  const Words words{"1f1b", "--pp", "2", "-m", "2", "--fsdp", "--to", "pytorch-csv-comms"};
  Words more = words;
  more.insert(more.end(), {"--send-budget", "1", "--unshard-lookahead", "1"});
  const std::string lists = call_command(tools::run_convert, more).output;
  EXPECT_NE(lists.find("0F1,0WAIT_SEND_F0,0SEND_F1"), std::string::npos) << lists;
  EXPECT_NE(call_command(tools::run_convert, words).output, lists);
}

}  // namespace
}  // namespace bubblescope::tests
