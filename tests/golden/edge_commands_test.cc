// After edges and vocabulary parallelism on the command line.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class EdgeCommands : public TemporaryFolder {
 protected:
  /// 1F1B on two ranks with two micro-batches, and one edge.
  std::string write_schedule(const std::string& edge) const {
    std::ofstream(path("edges.json"))
        << R"({"format":"bubblescope-schedule/1","name":"edges",)"
        << R"("shape":{"ranks":2,"chunks":1,"microbatches":2},"placement":[0,1],)"
        << R"("order":["0F0 0F1 0B0 0B1","1F0 1B0 1F1 1B1"],"after":[")" << edge << "\"]}";
    return path("edges.json");
  }

  /// The only problem that a check finds.
  static std::string problem_of(const std::string& arguments) {
    const CommandOutcome outcome = run_command(arguments + " --format json");
    EXPECT_EQ(outcome.status, 1) << arguments;
    const Json verdict = Json::parse(outcome.output);
    EXPECT_EQ(verdict["problems"].size(), 1u);
    return verdict["problems"][0]["message"];
  }

  static void expect_refusal(const std::string& arguments, int status, const std::string& says) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
  }
};

// 0F0 0..1, 1F0 1..2, 1B0 2..4, then 0F1, which waits for it, 4..5, 1F1 5..6, 1B1 6..8, 0B1 8..10.
TEST_F(EdgeCommands, AnEdgeIsOnTheCriticalPathAndInTheBound) {
  const Json report = read_report("simulate " + write_schedule("0F1 after 1B0"));
  EXPECT_EQ(report["makespan_ns"], 10'000'000);
  EXPECT_EQ(report["lower_bound_ns"], 10'000'000);
  std::string path;
  for (const Json& op : report["critical_path"])
    if (op["start_ns"] != op["end_ns"]) path += op["op"].get<std::string>() + " ";
  EXPECT_EQ(path, "0F0 1F0 1B0 0F1 1F1 1B1 0B1 ");
}

TEST_F(EdgeCommands, CheckCountsEdgesAndNamesThoseOfACycle) {
  const Json sound = read_report("check " + write_schedule("0F1 after 1B0"));
  EXPECT_EQ(sound["legal"], true);
  EXPECT_EQ(sound["after_edges"], 1);
  EXPECT_NE(problem_of("check " + write_schedule("0F1 after 1F1"))
                .find("0F1 waits for 1F1 of rank 1 (after edge)"),
            std::string::npos);
  EXPECT_NE(problem_of("check " + write_schedule("0F1 after 1F7")).find("1F7 is not in the order"),
            std::string::npos);
  expect_refusal("check " + write_schedule("0F1 behind 1F0"), 2, "/after/0: '0F1 behind 1F0'");
}

TEST_F(EdgeCommands, DotMarksAnEdge) {
  const CommandOutcome dot =
      run_command("convert " + write_schedule("0F1 after 1B0") + " --to dot");
  EXPECT_EQ(dot.status, 0);
  EXPECT_NE(dot.output.find("tooltip=\"after\""), std::string::npos) << dot.output;
}

TEST_F(EdgeCommands, OtherFormatsRefuseEdges) {
  const std::string file = write_schedule("0F1 after 1B0");
  for (const char* format :
       {"pytorch-csv", "pytorch-csv-comms", "text", "deepspeed", "goal", "goal-one-cpu"})
    expect_refusal("convert " + file + " --to " + format, 2, "'0F1 after 1B0'; write it as native");
}

// With rank threads that only sleep, 0F1 could start after 20 ms.
TEST_F(EdgeCommands, TheExecutorKeepsEdges) {
  const std::string saved = path("step.json");
  run_command("run " + write_schedule("0F1 after 1B0") +
              " --backend cpu --work sleep --f 20 --b 40 --steps 1 --warmup 0 --save " + saved);
  std::map<std::string, Json> rows;
  std::ifstream file(saved);
  const Json timeline = Json::parse(file);
  for (const Json& row : timeline["instructions"]) rows[row[1]] = row;
  EXPECT_GE(rows.at("0F1")[2].get<std::int64_t>(), rows.at("1B0")[3].get<std::int64_t>());
}

TEST_F(EdgeCommands, SplittingTheOutputLayerIsFasterThanTheWholeOnOneRank) {
  const std::string flags = " --pp 4 -m 32 --f 1 --b 2 --output-layer 1";
  const Json whole = read_report("simulate 1f1b" + flags);
  const Json split = read_report("simulate 1f1b-vocab" + flags);
  // The last rank takes 2 F + 2 B of work per micro-batch: 32 x 6 ms, and the fill of 3 x 3 ms.
  EXPECT_EQ(whole["makespan_ns"], 201'000'000);
  // 32 x (3 ms + 3 x 0.25 ms) + 3 x 3 ms + 4 F + F - 3 x 0.25 ms.
  EXPECT_EQ(split["makespan_ns"], 133'250'000);
  EXPECT_EQ(split["ranks"][0]["peak_activations"], 6.0);
  EXPECT_EQ(whole["ranks"][0]["peak_activations"], 4.0);
}

TEST_F(EdgeCommands, ACostFileGivesShardsTheirTimes) {
  std::ofstream(path("costs.json"))
      << R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":2},)"
      << R"({"forward":1,"backward":2},{"forward":0.25,"backward":0.5},)"
      << R"({"forward":0.25,"backward":0.5}]})";
  const std::string shape = "simulate 1f1b-vocab --pp 2 -m 8 ";
  EXPECT_EQ(read_report(shape + "--costs " + path("costs.json"))["makespan_ns"],
            read_report(shape + "--output-layer 0.5")["makespan_ns"]);
  std::ofstream(path("few.json"))
      << R"({"format":"bubblescope-costs/1","stages":[{"forward":1,"backward":2},)"
      << R"({"forward":1,"backward":2}]})";
  expect_refusal(shape + "--costs " + path("few.json"), 2, "2 shards of the output layer");
}

// The output layer of Llama 3 takes as long as several of its layers: whole, it makes the last rank
// the slowest, or leaves it fewer layers than others.
TEST_F(EdgeCommands, AModelsOutputLayerIsSplit) {
  const std::string flags = " --pp 8 -m 64 --model llama3-8b --gpu h100";
  const Json whole = read_report("simulate 1f1b" + flags);
  const Json split = read_report("simulate 1f1b-vocab" + flags);
  EXPECT_LT(split["makespan_ns"], whole["makespan_ns"]);
  const auto busy = [](const Json& report, std::size_t rank) {
    return report["ranks"][rank]["busy_ns"].get<double>();
  };
  EXPECT_NEAR(busy(split, 7) / busy(split, 3), 1, 0.02);
}

// A plan with a split head is the step that simulate shows.
TEST_F(EdgeCommands, PlansSplitAModelsOutputLayer) {
  const std::string model = " --model llama3-8b --gpu h100 --tp 1 --pp 4 --micro-batch-size 1";
  const Json plans = read_report(
      "plan --gpus 16 --global-batch-size 64 --recompute none --split balanced "
      "--schedules vocab" +
      model)["plans"];
  ASSERT_EQ(plans.size(), 4u);
  for (const Json& plan : plans) {
    const auto name = plan["schedule"].get<std::string>();
    const Json step = read_report("simulate " + name + " --dp 4 -m 16" + model);
    EXPECT_EQ(plan["step_ns"], step["makespan_ns"]) << name;
    const std::string layout = " --layout '" + plan["layout"].get<std::string>() + "'";
    EXPECT_EQ(read_report("simulate " + name + " --dp 4 -m 16" + model + layout)["makespan_ns"],
              step["makespan_ns"]);
  }
  expect_refusal("plan --schedules vocab --pp 2 -m 4", 2, "give --model");
}

TEST_F(EdgeCommands, ShardsComeBackFromAFile) {
  const std::string flags = " --output-layer 2";
  const std::string file = path("vocab.json");
  run_command("convert 1f1b-vocab --pp 3 -m 6 --to native -o " + file);
  EXPECT_EQ(read_report("simulate " + file + flags)["makespan_ns"],
            read_report("simulate 1f1b-vocab --pp 3 -m 6" + flags)["makespan_ns"]);
}

TEST_F(EdgeCommands, WhatDoesNotFitTheShardsIsRefused) {
  const std::string shape = " 1f1b-vocab --pp 2 -m 4 ";
  expect_refusal("simulate" + shape + "--model deepseek-v3 --gpu h100", 1,
                 "multi-token predictions have heads of their own");
  expect_refusal("simulate" + shape + "--layout 'Et|tL'", 2, "--layout has no word for the shards");
  expect_refusal("run 1f1b-vocab --pp 4 -m 4 --backend cpu --work transformer --vocab-size 3", 2,
                 "take --vocab-size 4 or more");
  expect_refusal("plan --schedules 1f1b-vocab --pp 2 -m 4", 2, "compare --output-layer");
  expect_refusal("convert" + shape + "--to pytorch-csv", 2, "stages beside the chain");
  expect_refusal("simulate 1f1b --pp 2 -m 4 --layout 'Et|tL' --output-layer 1", 2,
                 "leave --output-layer out");
  expect_refusal("simulate" + shape, 0, "takes no time here; give --output-layer");
}

}  // namespace
}  // namespace bubblescope::tests
