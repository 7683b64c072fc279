// Noise on the command line: keys and columns, and that they agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr const char* kNoisy =
    "compare gpipe,1f1b,zb-h1 --pp 4 -m 8 --f 10 --i 10 --w 9 --p2p 0.4 --jitter 5% "
    "--rank-jitter 2% --straggler probability=0.1%,factor=3 --seeds 200 ";

std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line);
  for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
  return cells;
}

// In each of the same 200 steps one of two schedules is faster, and ties count half: the two
// probabilities add up to one, and a schedule always ties with itself.
TEST(NoiseCommands, ComparisonsShowWinProbabilities) {
  const Json comparison = read_report(kNoisy);
  const Json& win_probability = comparison["win_probability"];
  ASSERT_EQ(win_probability.size(), 3u);
  for (std::size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(win_probability[row][row], 0.5);
    for (std::size_t column = 0; column < 3; ++column)
      EXPECT_NEAR(
          win_probability[row][column].get<double>() + win_probability[column][row].get<double>(),
          1, 1e-12);
  }
  // ZB-H1 fills a third of 1F1B's bubble of 3 x 29 ms out of 319 ms: no jitter of 5 % undoes that.
  EXPECT_GT(win_probability[2][1].get<double>(), 0.99);
}

class NoiseOfCostFiles : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    traces::write_file(path("costs.json"),
                       R"({"format": "bubblescope-costs/1", "forward": 10, "backward": 20,
                           "noise": {"jitter": 0.05}})");
  }

  CommandOutcome simulate(const std::string& flags) const {
    return run_with_messages("simulate 1f1b --pp 2 -m 4 --format json --costs " +
                             path("costs.json") + " " + flags);
  }
};

TEST_F(NoiseOfCostFiles, IsDrawnWithTheSeedsThatAreAskedFor) {
  for (const std::string command : {"simulate", "compare"}) {
    const CommandOutcome outcome = run_with_messages(
        command + " 1f1b --pp 2 -m 4 --seeds 50 --noise-seed 7 --costs " + path("costs.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_EQ(outcome.output.find("changes nothing"), std::string::npos) << outcome.output;
  }
  EXPECT_EQ(Json::parse(simulate("--seeds 50").output)["noise"]["seeds"], 50);
}

TEST_F(NoiseOfCostFiles, HasAShapeOfItsOwn) {
  const std::string output = simulate("--jitter-shape gaussian").output;
  EXPECT_NE(output.find("--jitter-shape changes nothing"), std::string::npos) << output;
  EXPECT_EQ(simulate("--jitter-shape gaussian --jitter 5%").output.find("changes nothing"),
            std::string::npos);
}

// 0 % is a choice, too: the step is then the same every time.
TEST_F(NoiseOfCostFiles, IsReplacedByNoNoise) {
  EXPECT_FALSE(Json::parse(simulate("--jitter 0%").output).contains("noise"));
  const std::string output = simulate("--jitter 0% --seeds 50").output;
  EXPECT_NE(output.find("--seeds changes nothing without noise"), std::string::npos) << output;
}

TEST(NoiseCommands, RenamedNumbersAreAlsoPrintedUnderTheirOldNames) {
  const Json comparison = read_report(kNoisy);
  EXPECT_EQ(comparison["beats"], comparison["win_probability"]);
  for (const Json& report : comparison["reports"]) {
    EXPECT_EQ(report["noise"]["least_ns"], report["noise"]["min_ns"]);
    EXPECT_EQ(report["noise"]["most_ns"], report["noise"]["max_ns"]);
  }
  std::istringstream table(run_command(std::string(kNoisy) + "--format csv").output);
  std::string line;
  std::getline(table, line);
  const std::vector<std::string> header = cells(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  ASSERT_TRUE(std::getline(table, line));
  const std::vector<std::string> values = cells(line);
  EXPECT_EQ(values.at(column("least_ns")), values.at(column("min_ns")));
  EXPECT_EQ(values.at(column("most_ns")), values.at(column("max_ns")));
  EXPECT_EQ(values.at(column("beats_1f1b")), values.at(column("win_probability_1f1b")));
}

TEST(NoiseCommands, EveryReportHasItsStepTimes) {
  const Json output = read_report(kNoisy);
  for (const Json& report : output["reports"]) {
    const Json& noise = report["noise"];
    EXPECT_EQ(noise["seeds"], 200);
    EXPECT_LE(noise["min_ns"], noise["p50_ns"]);
    EXPECT_LE(noise["p50_ns"], noise["p95_ns"]);
    EXPECT_LE(noise["p95_ns"], noise["max_ns"]);
    EXPECT_GT(noise["mean_ns"].get<double>(), report["makespan_ns"].get<double>());
  }
}

TEST(NoiseCommands, CsvHasTheSameNumbers) {
  const Json comparison = read_report(kNoisy);
  std::istringstream table(run_command(std::string(kNoisy) + "--format csv").output);
  std::string line;
  std::getline(table, line);
  const std::vector<std::string> header = cells(line);
  const auto column = [&](const std::string& name) {
    return static_cast<std::size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  };
  ASSERT_LT(column("win_probability_zb-h1"), header.size()) << line;
  for (std::size_t row = 0; row < 3; ++row) {
    ASSERT_TRUE(std::getline(table, line));
    const std::vector<std::string> values = cells(line);
    ASSERT_EQ(values.size(), header.size()) << line;
    const Json& noise = comparison["reports"][row]["noise"];
    EXPECT_EQ(std::stoll(values[column("p50_ns")]), noise["p50_ns"].get<long long>());
    EXPECT_EQ(std::stoll(values[column("p95_ns")]), noise["p95_ns"].get<long long>());
    EXPECT_EQ(std::stoll(values[column("max_ns")]), noise["max_ns"].get<long long>());
    EXPECT_NEAR(std::stod(values[column("win_probability_gpipe")]),
                comparison["win_probability"][row][0].get<double>(), 1e-9);
  }
}

TEST(NoiseCommands, WithoutNoiseThereIsNoneInTheCsv) {
  const std::string output = run_command("compare gpipe,1f1b --pp 4 -m 8 --format csv").output;
  EXPECT_EQ(output.find("p50"), std::string::npos) << output;
}

// 1F1B, 4 ranks: the critical path is 8 + 3 times F and B of 1 and 2 ms. One percent of a kind on
// all ranks is one percent of its part of the path.
TEST(NoiseCommands, SensitivityIsInTheReport) {
  const Json sensitivity = read_report("simulate 1f1b --pp 4 -m 8 --sensitivity")["sensitivity"];
  EXPECT_EQ(sensitivity["more"], 0.01);
  EXPECT_EQ(sensitivity["by_kind_ns"]["F"], 110'000);
  EXPECT_EQ(sensitivity["by_kind_ns"]["B"], 220'000);
  EXPECT_EQ(sensitivity["by_rank_ns"].size(), 4u);
}

// A NIC of 8 Gb/s is 1 ns per byte: each of the 8 forward messages of a micro-batch takes 1 MB / 1
// GB/s = 1 ms out of node 0.
TEST(NoiseCommands, ComparisonsSayWhatEverySchedulesStepIsSensitiveTo) {
  const std::string text = run_command("compare 1f1b,zb-h1 --pp 4 -m 8 --sensitivity").output;
  EXPECT_NE(text.find("\n1f1b: 1 % more of  F +110 us  B +220 us  rank 3"), std::string::npos)
      << text;  // 11 forwards and backwards on the critical path, of 1 and 2 ms
  EXPECT_NE(text.find("\nzb-h1: 1 % more of"), std::string::npos) << text;
}

TEST(NoiseCommands, LinksAreInTheReport) {
  const Json links = read_report(
      "simulate forward-only --pp 2 -m 8 --network bytes=1MB,per-node=1,link=1000,nic=8")["links"];
  ASSERT_FALSE(links.empty());
  EXPECT_EQ(links[0]["name"], "nic 0 out");
  EXPECT_EQ(links[0]["bytes"], 8'000'000);
  EXPECT_EQ(links[0]["busy_ns"], 8'000'000);
  EXPECT_GT(links[0]["utilization"].get<double>(), 0.5);
}

}  // namespace
}  // namespace bubblescope::tests
