// Tests reports on jobs of which the trace of one rank is missing: the others keep their numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/golden/reference_data.h"
#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

/// The row of a rank in a csv report.
std::string csv_row(const std::string& csv, std::size_t rank) {
  std::size_t at = 0;
  for (std::size_t row = 0; row <= rank; ++row) at = csv.find('\n', at) + 1;
  return csv.substr(at, csv.find('\n', at) - at);
}

class MissingRanksCommand : public TemporaryFolder {
 protected:
  /// Expects that rank `missing` of 4 is in no form of the report, and the others are as in `all`.
  void expect_own_numbers(const std::string& files, std::size_t missing, const Json& all) {
    SCOPED_TRACE("rank " + std::to_string(missing) + " is missing");
    const CommandOutcome text = run_command("analyze " + files + " --html " + path("page.html"));
    ASSERT_EQ(text.status, 0) << text.output;
    EXPECT_TRUE(first_line(text.output).starts_with("not trusted: ")) << text.output;
    for (const char* words : {"shown as recorded", "own numbers", "what they waited for"})
      EXPECT_TRUE(contains(first_line(text.output), words)) << first_line(text.output);
    for (std::size_t rank = 0; rank < 4; ++rank)
      EXPECT_EQ(contains(text.output, "\nrank " + std::to_string(rank) + " "), rank != missing)
          << text.output;
    const std::string page = traces::read_file(path("page.html"));
    EXPECT_TRUE(contains(text.output, "\nall "));
    EXPECT_TRUE(contains(page, "is missing")) << "the page does not say so";

    const std::string csv = run_command("analyze " + files + " --format csv").output;
    const Json json = read_report("analyze " + files);
    EXPECT_TRUE(json["bubble"].is_null());
    EXPECT_TRUE(json["causes"].is_null());
    ASSERT_EQ(json["ranks"].size(), 4u);
    for (std::size_t rank = 0; rank < 4; ++rank) {
      const Json& row = json["ranks"][rank];
      EXPECT_EQ(row["rank"], rank);
      const std::string number = "," + std::to_string(rank) + ",";
      EXPECT_TRUE(contains(csv_row(csv, rank), number + (rank == missing ? "," : ""))) << csv;
      EXPECT_EQ(row["busy_ns"].is_null(), rank == missing);
      if (rank == missing) continue;
      const auto busy = all["ranks"][rank]["busy_ns"].get<double>();
      EXPECT_NEAR(row["busy_ns"].get<double>(), busy, 0.01 * busy) << "rank " << rank;
    }
  }
};

// Without a rank in the middle, and without the first or the last, which leaves a pipeline that
// looks whole.
TEST_F(MissingRanksCommand, PytorchRunsKeepTheNumbersOfTheOthers) {
  const std::string root = "traces/pytorch/";
  if (const std::string none = missing_reference(root + "1F1B/rank0.json.gz"); !none.empty())
    GTEST_SKIP() << none;
  for (const char* run : {"1F1B", "GPipe", "csv-zbh1", "DualPipeV"}) {
    SCOPED_TRACE(run);
    const std::string folder = reference_folder() + "/" + root + run;
    const auto file = [&](std::size_t rank) {
      return folder + "/rank" + std::to_string(rank) + ".json.gz ";
    };
    const Json all = read_report("analyze " + file(0) + file(1) + file(2) + file(3));
    for (std::size_t missing = 0; missing < 4; ++missing) {
      std::string files;
      for (std::size_t rank = 0; rank < 4; ++rank)
        if (rank != missing) files += file(rank);
      expect_own_numbers(files, missing, all);
    }
  }
}

// A trace of our own, of which the slices of one rank were deleted.
TEST_F(MissingRanksCommand, OurTracesKeepTheNumbersOfTheOthers) {
  for (const char* schedule : {"1f1b", "interleaved", "zb-v"}) {
    SCOPED_TRACE(schedule);
    run_command(std::string("simulate ") + schedule + " --pp 4 -m 8 --p2p 0.25 --trace " +
                path("all.json"));
    const Json all = read_report("analyze " + path("all.json"));
    const Json trace = Json::parse(traces::read_file(path("all.json")));
    for (std::size_t missing = 0; missing < 4; ++missing) {
      Json some = trace;
      Json& events = some["traceEvents"];
      events.erase(
          std::remove_if(events.begin(), events.end(),
                         [&](const Json& event) { return event.value("pid", 99u) == missing; }),
          events.end());
      traces::write_file(path("some.json"), some.dump());
      expect_own_numbers(path("some.json"), missing, all);
    }
  }
}

// A csv, of which the rows of one rank were deleted.
TEST_F(MissingRanksCommand, CsvKeepsTheNumbersOfTheOthers) {
  run_command("simulate 1f1b --pp 4 -m 8 --p2p 0.25 --timeline " + path("all.csv"));
  const Json all = read_report("analyze " + path("all.csv"));
  const std::string csv = traces::read_file(path("all.csv"));
  for (std::size_t missing = 0; missing < 3; ++missing) {
    SCOPED_TRACE(missing);
    std::string some;
    for (std::size_t at = 0; at < csv.size();) {
      const std::string row = csv.substr(at, csv.find('\n', at) + 1 - at);
      at += row.size();
      if (!row.starts_with(std::to_string(missing) + ",")) some += row;
    }
    traces::write_file(path("some.csv"), some);
    expect_own_numbers(path("some.csv"), missing, all);
    // A csv of such a step does not show the rank either.
    run_command("analyze " + path("some.csv") + " --timeline " + path("again.csv"));
    expect_own_numbers(path("again.csv"), missing, all);
  }
}

/// Slices as StragglerAnalysis writes them: threads state the rank, and ops no stage.
Json make_thread_trace(const std::vector<int>& ranks, int replica = 0) {
  Json events = Json::array();
  for (const int rank : ranks) {
    const std::string name = "PP rank " + std::to_string(rank) + ", TP rank 0, compute";
    events.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", replica},
                      {"tid", rank},
                      {"args", {{"name", name}}}});
    for (int microbatch = 0; microbatch < 4; ++microbatch) {
      const Json args = {{"step", 1}, {"mb_id", microbatch}};
      events.push_back({{"ph", "X"},
                        {"name", "forward-compute"},
                        {"pid", replica},
                        {"tid", rank},
                        {"ts", 100 * (rank + microbatch)},
                        {"dur", 100},
                        {"args", args}});
      events.push_back({{"ph", "X"},
                        {"name", "backward-compute"},
                        {"pid", replica},
                        {"tid", rank},
                        {"ts", 700 + 200 * (3 - rank + microbatch)},
                        {"dur", 200},
                        {"args", args}});
    }
  }
  return {{"traceEvents", events}};
}

TEST_F(MissingRanksCommand, ThreadsThatStateTheirRankKeepIt) {
  traces::write_file(path("all.json"), make_thread_trace({0, 1, 2, 3}).dump());
  const Json all = read_report("analyze " + path("all.json"));
  for (std::size_t missing = 0; missing < 3; ++missing) {
    std::vector<int> ranks{0, 1, 2, 3};
    ranks.erase(ranks.begin() + static_cast<std::ptrdiff_t>(missing));
    traces::write_file(path("some.json"), make_thread_trace(ranks).dump());
    expect_own_numbers(path("some.json"), missing, all);
  }
}

// Replica 1 lacks rank 2, so the report covers replica 0 alone, and says so first.
TEST_F(MissingRanksCommand, OneReplicaThatLacksARankIsLeftOut) {
  Json trace = make_thread_trace({0, 1, 2, 3});
  const Json second = make_thread_trace({0, 1, 3}, 1);
  for (const Json& event : second["traceEvents"]) trace["traceEvents"].push_back(event);
  traces::write_file(path("some.json"), trace.dump());
  const std::string text = run_command("analyze " + path("some.json")).output;
  EXPECT_EQ(first_line(text), "trusted with reservations:");
  EXPECT_TRUE(contains(text,
                       "  of replica 1, the trace of rank 2 is missing; this replica is left "
                       "out of the report on the others"))
      << text;
  const Json report = read_report("analyze " + path("some.json"));
  EXPECT_FALSE(report["bubble"].is_null());
  EXPECT_EQ(report["per_iteration"].size(), 1u);
  // A slow worker may be in the replica that was left out.
  const std::string gated = "analyze " + path("some.json") + " --fail-if ";
  EXPECT_EQ(run_command(gated + "'cause_worker_s>0.01'").status, 1);
  EXPECT_EQ(run_command(gated + "'cause_stage_s>0.01'").status, 0);
}

}  // namespace
}  // namespace bubblescope::tests
