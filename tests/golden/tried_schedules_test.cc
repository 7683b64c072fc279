// Predictions of a measured step with other schedules: analyze --try.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/rank_profile.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kCosts = " --pp 4 -m 8 --f 10 --i 11 --w 9 --p2p 0.4";

class TriedSchedules : public TemporaryFolder {
 protected:
  /// Records a step as run.json.
  void record(const std::string& simulation) const {
    EXPECT_EQ(run_command("simulate " + simulation + " --trace " + path("run.json")).status, 0);
  }
};

TEST_F(TriedSchedules, AgreeWithSimulations) {
  record(std::string("1f1b") + kCosts);
  const Json report =
      read_report("analyze " + path("run.json") +
                      " --try zb-h1,chimera -m 8,9 --split-b 0.55 --try-out " + path("best.json"),
                  1);
  const Json& tries = report["tries"];
  ASSERT_EQ(tries.size(), 5u);
  EXPECT_EQ(tries[0]["schedule"], "1f1b");
  EXPECT_EQ(tries[0]["step_ns"], report["makespan_ns"]);
  EXPECT_EQ(tries[0]["change"], 0);
  EXPECT_NEAR(report["fit_error"].get<double>(), 0, 1e-9);
  const Json zb_h1 = read_report(std::string("simulate zb-h1") + kCosts);
  EXPECT_EQ(tries[1]["step_ns"], zb_h1["makespan_ns"]);
  EXPECT_NEAR(tries[1]["change"].get<double>(),
              zb_h1["makespan_ns"].get<double>() / report["makespan_ns"].get<double>() - 1, 1e-6);
  EXPECT_EQ(tries[1]["memory_ratio"], 1);  // ZB-H1 holds what 1F1B holds
  EXPECT_TRUE(tries[0]["measured"]);
  // With 9 micro-batches more of the step is steady, so that each takes less of it.
  EXPECT_FALSE(tries[1].contains("best"));
  EXPECT_TRUE(tries[2]["best"]);
  // Chimera runs half of the micro-batches in each direction, so it needs an even number.
  EXPECT_TRUE(tries[4].contains("problem")) << tries[4];
  EXPECT_EQ(run_command("check " + path("best.json")).status, 0);
  const Json best = Json::parse(traces::read_file(path("best.json")));
  EXPECT_EQ(best["shape"]["microbatches"], tries[2]["microbatches"]);
}

TEST_F(TriedSchedules, WithoutASplitNoHalvesAreInvented) {
  record(std::string("1f1b") + kCosts);
  const Json report = read_report("analyze " + path("run.json") + " --try zb-h1", 1);
  EXPECT_NE(report["tries"][1]["problem"].get<std::string>().find("--split-b"), std::string::npos);
}

// Eight stages of one pipeline become four of each direction, with the same work per rank.
TEST_F(TriedSchedules, OfTwoDirectionsTakeAsLongAsTheirSimulations) {
  const std::string costs = " --pp 4 -m 8 --f 10 --i 12 --w 8";
  record("interleaved --vpp 2" + costs);
  const Json report = read_report("analyze " + path("run.json") +
                                  " --try dualpipe,chimera,gems,dualpipev,1f1b --split-b 0.6");
  ASSERT_EQ(report["tries"].size(), 6u);
  for (std::size_t at = 1; at < report["tries"].size(); ++at) {
    const Json& row = report["tries"][at];
    const std::string name = row["schedule"];
    EXPECT_EQ(row["step_ns"], read_report("simulate " + name + costs)["makespan_ns"]) << name;
  }
}

TEST_F(TriedSchedules, NameFlagsWhereTheyAreRefused) {
  record("1f1b --pp 3 -m 6");
  const Json report = read_report("analyze " + path("run.json") + " --try dualpipe", 1);
  const std::string problem = report["tries"][1]["problem"];
  EXPECT_NE(problem.find("--pp must be even"), std::string::npos) << problem;
}

TEST_F(TriedSchedules, TrainIfTheMeasuredStepsDo) {
  record("1f1b --pp 2 -m 4");
  const Json report = read_report("analyze " + path("run.json") + " --try forward-only,gpipe", 1);
  ASSERT_EQ(report["tries"].size(), 3u);
  EXPECT_FALSE(report["tries"][1].contains("step_ns")) << report["tries"][1];
  EXPECT_TRUE(report["tries"][2].contains("step_ns")) << report["tries"][2];
  record("forward-only --pp 2 -m 4");
  EXPECT_TRUE(
      read_report("analyze " + path("run.json") + " --try forward-only")["tries"][0].contains(
          "step_ns"));
}

// Schedules that are asked for by name and cannot be run are a problem, beside the other rows.
TEST_F(TriedSchedules, ThatAreRefusedAreAProblem) {
  record(std::string("1f1b") + kCosts);
  const std::string analyze = "analyze " + path("run.json");
  const std::string some = analyze + " --try gpipe,chimera -m 8,9";
  const CommandOutcome outcome = run_with_messages(some);
  EXPECT_EQ(outcome.status, 1);
  for (const char* text :
       {"\ngpipe                         9 ", "\nchimera                       8 ",
        "  9  chimera cannot be built: half of the micro-batches go in each",
        "\nbubblescope: not tried: chimera (-m 9)\n"})
    EXPECT_NE(outcome.output.find(text), std::string::npos) << text << "\n" << outcome.output;
  const Json tries = read_report(some, 1)["tries"];
  ASSERT_EQ(tries.size(), 5u);
  for (const Json& row : tries)
    EXPECT_EQ(row.contains("problem"), row["schedule"] == "chimera" && row["microbatches"] == 9)
        << row;
  EXPECT_EQ(run_command(analyze + " --try gpipe,chimera").status, 0);
  EXPECT_EQ(run_command(analyze + " --try all -m 9").status, 0);
  // So are those that are named beside "all", by any of their names.
  const CommandOutcome beside = run_with_messages(analyze + " --try all,Chimera -m 9");
  EXPECT_EQ(beside.status, 1);
  for (const char* text : {"  9  chimera cannot be built: half of the micro-batches go in each",
                           "\nbubblescope: not tried: chimera (-m 9)\n",
                           "note: not tried: chimera-halving, dualpipe: cannot be built: half"})
    EXPECT_NE(beside.output.find(text), std::string::npos) << text << "\n" << beside.output;
}

/// Profiles of PyTorch of two ranks that run 1F1B with two micro-batches.
void write_profiles(const std::string& folder) {
  struct TimedOp {
    const char* name;
    int start;
    int duration;
  };
  const std::vector<std::vector<TimedOp>> ranks = {
      {{"0F0", 0, 10}, {"0F1", 10, 10}, {"0B0", 40, 20}, {"0B1", 70, 20}},
      {{"1F0", 10, 10}, {"1B0", 20, 20}, {"1F1", 40, 10}, {"1B1", 50, 20}}};
  std::filesystem::create_directory(folder);
  for (int rank = 0; rank < 2; ++rank) {
    RankProfile profile(rank);
    profile.process(10 + rank).annotation("ProfilerStep#1", 1'000, 200);
    for (const TimedOp& op : ranks[static_cast<std::size_t>(rank)]) {
      const int start = 1'000 + op.start;
      profile.annotation(std::string("PP:") + op.name, start, op.duration);
      if (op.name[1] == 'B')
        profile.gradient(start, op.duration);
      else
        profile.call("aten::mm", start, op.duration);
    }
    traces::write_file(folder + "/rank" + std::to_string(rank) + ".json", profile.text());
  }
}

// PyTorch's stages are one pipeline, so that it refuses schedules of two directions.
TEST_F(TriedSchedules, OfARecordingOfPytorchAreBestIfItCanRunThem) {
  write_profiles(path("job"));
  const std::string analyze = "analyze " + path("job");
  Json report = read_report(analyze + " --try all --split-b 0.5");
  std::set<std::string> refused;
  for (const Json& row : report["tries"])
    if (row.contains("refused_by_pytorch"))
      refused.insert(row["schedule"]);
    else
      EXPECT_TRUE(refused.empty()) << row;  // those that it can run come first
  for (const char* name : {"chimera", "gems"}) EXPECT_TRUE(refused.contains(name)) << name;
  for (const char* name : {"gpipe", "zb-h1"}) EXPECT_FALSE(refused.contains(name)) << name;
  EXPECT_TRUE(report["tries"][1]["best"]);
  const std::string notes = report["try_notes"].dump();
  EXPECT_NE(notes.find("PyTorch's pipeline runtime cannot run chimera"), std::string::npos)
      << notes;
  EXPECT_NE(notes.find(", so the best is another one: "), std::string::npos) << notes;

  report = read_report(analyze + " --try chimera,gpipe");
  EXPECT_TRUE(report["tries"][2]["best"]) << report["tries"];
  report = read_report(analyze + " --try chimera");
  EXPECT_TRUE(report["tries"][1]["best"]) << report["tries"];
  EXPECT_NE(
      report["try_notes"].dump().find(
          "PyTorch's pipeline runtime cannot run chimera: chimera sends 1 of 2 micro-batches"),
      std::string::npos)
      << report["try_notes"];
}

// A simulated step was recorded by no runtime.
TEST_F(TriedSchedules, OfASimulatedStepMayBeOfTwoDirections) {
  record(std::string("1f1b") + kCosts);
  const Json report = read_report("analyze " + path("run.json") + " --try chimera");
  for (const Json& row : report["tries"]) EXPECT_FALSE(row.contains("refused_by_pytorch")) << row;
}

// A schedule may be refused in some shapes and have rows in others.
TEST_F(TriedSchedules, OfAllSayWhichShapesAreRefused) {
  record(std::string("1f1b") + kCosts);
  const Json report =
      read_report("analyze " + path("run.json") + " --try all -m 8,9 --vpp 2,3 --split-b 0.5");
  const std::string notes = report["try_notes"].dump();
  for (const char* text :
       {"not tried: chimera (-m 9), chimera-halving (-m 9), dualpipe (-m 9): cannot be built: half",
        "not tried: hanayo (-m 8 --vpp 3, -m 9 --vpp 3): cannot be built", "not tried: slimpipe: "})
    EXPECT_NE(notes.find(text), std::string::npos) << text << "\n" << notes;
  for (const Json& row : report["tries"])
    EXPECT_EQ(notes.find("not tried: " + row["schedule"].get<std::string>() + ":"),
              std::string::npos)
        << row;
}

// Schedules without flushes and with split output layers are no ways to run this job.
TEST_F(TriedSchedules, OfAllAreThoseThatSuitTheJob) {
  record(std::string("1f1b") + kCosts);
  Json report = read_report("analyze " + path("run.json") + " --try all");
  const std::string notes = report["try_notes"].dump();
  EXPECT_NE(notes.find("zb-v: needs the backward in two halves"), std::string::npos) << notes;
  EXPECT_NE(notes.find("--split-b 0.5"), std::string::npos) << notes;
  report = read_report("analyze " + path("run.json") + " --try all --split-b 0.5");
  std::set<std::string> names;
  double last = -1;
  for (std::size_t at = 1; at < report["tries"].size(); ++at) {
    const Json& row = report["tries"][at];
    names.insert(row["schedule"]);
    EXPECT_FALSE(row.contains("problem")) << row;
    EXPECT_EQ(row.contains("best"), at == 1) << row;
    EXPECT_LE(last, row["change"].get<double>()) << row;  // the best is the first
    last = row["change"];
  }
  for (const char* name : {"1f1b", "zb-v", "interleaved", "gpipe"})
    EXPECT_TRUE(names.contains(name)) << name;
  for (const char* name : {"pipedream", "1f1b-vocab", "forward-only"})
    EXPECT_FALSE(names.contains(name)) << name;
  EXPECT_NE(
      report["try_notes"].dump().find("not tried: 1f1b-vocab, 1f1b-vocab-2, v-half-vocab, "
                                      "v-half-vocab-2: the output layer is split, whose time"),
      std::string::npos)
      << report["try_notes"];
}

// Two of these schedules have a fixed number of chunks.
TEST_F(TriedSchedules, HaveTheChunksThatAreChosen) {
  record(std::string("1f1b") + kCosts);
  const std::string analyze = "analyze " + path("run.json");
  const Json report = read_report(analyze + " --try 1f1b-v,interleaved,gpipe --vpp 2,4");
  const Json& tries = report["tries"];
  ASSERT_EQ(tries.size(), 5u) << tries;
  EXPECT_FALSE(tries[1].contains("chunks"));
  EXPECT_EQ(tries[2]["chunks"], 2);
  EXPECT_EQ(tries[3]["chunks"], 4);
  // Interleaving divides the bubble of (p - 1)(f + b) by the chunks, and costs nothing here.
  EXPECT_LT(tries[3]["step_ns"], tries[2]["step_ns"]);
  EXPECT_EQ(tries[2]["step_ns"],
            read_report(analyze + " --try interleaved")["tries"][1]["step_ns"]);
  EXPECT_NE(
      run_command(analyze + " --try interleaved --vpp 4").output.find("\ninterleaved, 4 chunks "),
      std::string::npos);
  CommandOutcome refused = run_with_messages(analyze + " --try gpipe --vpp 2");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("leave --vpp out"), std::string::npos) << refused.output;
  refused = run_with_messages(analyze + " --vpp 2");
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("--vpp goes with --try"), std::string::npos) << refused.output;
}

// A stage has a layer at least. 4 ranks of 256 chunks would have 1024.
TEST_F(TriedSchedules, HaveNoMoreStagesThanModelsHaveLayers) {
  record(std::string("1f1b") + kCosts);
  const std::string analyze = "analyze " + path("run.json") + " --try interleaved --vpp 256,";
  const Json tries = read_report(analyze + "257,65536", 1)["tries"];
  ASSERT_EQ(tries.size(), 4u);
  EXPECT_TRUE(tries[1].contains("step_ns")) << tries;
  EXPECT_EQ(tries[2]["problem"],
            "cannot have 257 chunks on each of 4 ranks: every stage has a layer at least, and 1028 "
            "layers are more than models have; give --vpp from 2 to 256");
  EXPECT_TRUE(tries[3].contains("problem")) << tries;
}

// The mean stage takes 1.075 times as long as the first ones, and the last 1.3 times.
TEST_F(TriedSchedules, KeepTheMeasuredSplitOfLayers) {
  const auto note_of = [&](const std::string& times) {
    std::ofstream(path("costs.json")) << R"({"format":"bubblescope-costs/1","forward":)" << times
                                      << R"(,"backward":)" << times << "}";
    record("1f1b --pp 4 -m 8 --costs " + path("costs.json"));
    return read_report("analyze " + path("run.json") + " --try gpipe")["try_notes"].dump();
  };
  EXPECT_NE(note_of("[1,1,1,1.3]")
                .find("as in the trace (the longest stage takes 20.9 % more than "
                      "the mean): another split may take more or less time"),
            std::string::npos);
  EXPECT_NE(note_of("[1,1,1,1]").find("as in the trace: another split"), std::string::npos);
}

// ZB-H1 is listed by two spellings, and 8 micro-batches are the measured ones.
TEST_F(TriedSchedules, AreEachTriedOnce) {
  record(std::string("1f1b") + kCosts);
  const Json report = read_report("analyze " + path("run.json") +
                                  " --try 'zb-h1, 1f1b,ZB_H1,1F1B' -m 8,8 --split-b 0.5");
  ASSERT_EQ(report["tries"].size(), 3u) << report["tries"];  // the measured one is the first
  EXPECT_EQ(report["tries"][1]["schedule"], "zb-h1");
  EXPECT_EQ(report["tries"][2]["schedule"], "1f1b");
  EXPECT_EQ(run_command("analyze " + path("run.json") + " --try ,").status, 2);
}

}  // namespace
}  // namespace bubblescope::tests
