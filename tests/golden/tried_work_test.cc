// Tests that 'analyze --try' gives other schedules the work that the measured step has besides its
// forwards and backwards: its predictions are those of 'simulate' with the same flags.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kCosts = " --pp 4 -m 8 --f 10 --b 20 --i 10 --w 10 --p2p 0.25 ";

class TriedWork : public TemporaryFolder {
 protected:
  static std::int64_t simulate(const std::string& schedule, const std::string& flags) {
    return read_report("simulate " + schedule + kCosts + flags)["makespan_ns"].get<std::int64_t>();
  }

  Json analyze(const std::string& schedule, const std::string& flags, const std::string& tries,
               int status = 0) {
    run_command("simulate " + schedule + kCosts + flags + " --trace " + path("step.json"));
    return read_report("analyze " + path("step.json") + " --try " + tries + " --split-b 0.5",
                       status);
  }

  void expect_same_work(const std::string& measured, const std::string& other,
                        const std::string& flags) {
    SCOPED_TRACE(measured + " and " + other + " with " + flags);
    const Json report = analyze(measured, flags, other);
    EXPECT_EQ(report["tries"][0]["step_ns"], simulate(measured, flags));
    EXPECT_EQ(report["tries"][1]["step_ns"], simulate(other, flags)) << report["tries"];
    EXPECT_EQ(report["fit_error"], 0);
  }
};

TEST_F(TriedWork, HasTheEndOfTheStep) {
  for (const char* flags : {"--optimizer barrier --grad-reduction overlap --optimizer-step 5 "
                            "--reduce-grad 40 --norm 3",
                            "--optimizer local --grad-reduction serial --optimizer-step 5 "
                            "--reduce-grad 7",
                            "--optimizer post-validation --optimizer-step 5 --norm 3"})
    for (const char* other : {"zb-h1", "gpipe"}) expect_same_work("1f1b", other, flags);
}

TEST_F(TriedWork, GathersParametersByTheSameRule) {
  for (const char* flags : {"--fsdp --unshard 8 --reduce-grad 8",
                            "--fsdp --unshard 8 --reduce-grad 8 --unshard-lookahead 1",
                            "--fsdp --unshard 8 --optimizer barrier --optimizer-step 5 --norm 1"})
    expect_same_work("interleaved", "bfs", flags);
}

TEST_F(TriedWork, Recomputes) {
  expect_same_work("1f1b", "gpipe", "--recompute full");
  expect_same_work("1f1b", "gpipe", "--recompute selective");
}

TEST_F(TriedWork, IsRefusedWhereTheOtherScheduleDoesNotHaveIt) {
  const Json report = analyze("1f1b", "--offload 0.5", "gpipe", 1);
  EXPECT_EQ(report["tries"][1]["problem"],
            "does not offload activations, as the measured schedule does");
}

TEST_F(TriedWork, ShardsOfTheOutputLayerAreNoStages) {
  const Json report = analyze("1f1b-vocab", "--output-layer 4", "1f1b-vocab,1f1b,search", 1);
  EXPECT_EQ(report["tries"][0]["step_ns"], report["makespan_ns"]);
  EXPECT_EQ(report["tries"][1]["step_ns"], report["makespan_ns"]) << report["tries"];
  for (const std::size_t row : {2u, 3u})
    EXPECT_TRUE(report["tries"][row].contains("problem")) << report["tries"];
  for (const Json& stage : report["stragglers"]["stages"]) EXPECT_LT(stage["stage"], 4);
}

// Each of these was measured; the others have its stages, or twice as many or half of them. Passes
// T of a shard are two GEMMs of the same size.
TEST_F(TriedWork, SplitOutputLayersAreTriedAmongThemselves) {
  const std::vector<std::string> schedules{"1f1b-vocab", "1f1b-vocab-2", "v-half-vocab",
                                           "v-half-vocab-2"};
  const std::string flags = "--output-layer 4";
  for (const std::string& measured : schedules) {
    run_command("simulate " + measured + kCosts + flags + " --trace " + path("step.json"));
    const Json report = read_report("analyze " + path("step.json") + " --try all --split-b 0.5");
    ASSERT_EQ(report["tries"].size(), 1 + schedules.size()) << report["tries"];
    EXPECT_EQ(report["tries"][0]["step_ns"], simulate(measured, flags));
    for (const Json& row : report["tries"])
      EXPECT_EQ(row["step_ns"], simulate(row["schedule"], flags)) << measured << ": " << row;
    EXPECT_NE(report["try_notes"].dump().find("zb-v: the output layer is on one rank"),
              std::string::npos)
        << report["try_notes"];
  }
}

// Nothing shows how much of pass T computes which gradient.
TEST_F(TriedWork, ShardsAreSplitOnlyIfAsked) {
  run_command(std::string("simulate v-half-vocab --output-layer 4") + kCosts + " --trace " +
              path("step.json"));
  const std::string analyze = "analyze " + path("step.json") + " --try v-half-vocab,v-half-vocab-2";
  const Json report = read_report(analyze, 1);
  EXPECT_EQ(report["tries"][1]["step_ns"], report["makespan_ns"]) << report["tries"];
  EXPECT_EQ(report["tries"][2]["problem"],
            "needs the backward of the output layer's shards in two halves, and the trace shows it "
            "whole; "
            "--split-b 0.5 would halve it");
  EXPECT_TRUE(read_report(analyze + " --split-b 0.5")["tries"][2].contains("step_ns"));
}

// A csv does not say that all shards read the last stage, so it looked like a chain of 8 stages.
TEST_F(TriedWork, CsvOfShardsAreRefused) {
  for (const char* schedule : {"1f1b-vocab", "v-half-vocab"})
    for (const char* ranks : {"2", "4"}) {
      run_command(std::string("simulate ") + schedule + " -m 8 --output-layer 4 --pp " + ranks +
                  " --timeline " + path("step.csv"));
      const CommandOutcome outcome = run_with_messages("analyze " + path("step.csv"));
      EXPECT_EQ(outcome.status, 2) << outcome.output;
      EXPECT_NE(outcome.output.find("its stages are not a chain"), std::string::npos)
          << outcome.output;
      EXPECT_NE(outcome.output.find("with --save"), std::string::npos) << outcome.output;
    }
}

// A pause of 100 ms on rank 2: it is no larger stage.
TEST_F(TriedWork, PausesAreNamedOnce) {
  run_command(
      "simulate 1f1b --pp 4 -m 8 --f 10 --b 20 --inject rank=2,op=2F3,delay=100ms --trace " +
      path("step.json"));
  const std::string text = run_command("analyze " + path("step.json")).output;
  EXPECT_NE(text.find("pauses: 1 op took 11 x as long as usual"), std::string::npos) << text;
  EXPECT_EQ(text.find("unequal stages"), std::string::npos) << text;
  const Json json = read_report("analyze " + path("step.json"));
  ASSERT_EQ(json["causes"].size(), 1u) << json["causes"];
  EXPECT_EQ(json["causes"][0]["saves_ns"], 100'000'000);
  EXPECT_EQ(json["causes_together_ns"], 100'000'000);
}

}  // namespace
}  // namespace bubblescope::tests
