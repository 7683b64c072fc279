// Compares profiles that PyTorch's pipelining writes with times recorded inside the stages.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/golden/reference_data.h"
#include "tests/support/command.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

/// Means over the steps of the times that were recorded inside the stages.
struct Truth {
  double step_ns = 0;
  double bubble = 0;
};

/// The length of a step, and the time for which its ranks were busy.
struct StepTruth {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  std::int64_t busy = 0;
};

/// The files' rows: [step, stage, kind, micro-batch, start ns, end ns].
Truth read_truth(const std::string& folder) {
  constexpr int kRanks = 4;
  std::map<int, StepTruth> steps;
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::string path = folder + "/truth" + std::to_string(rank) + ".json.gz";
    for (const Json& row : Json::parse(traces::read_file(path))) {
      StepTruth& step = steps[row[0].get<int>()];
      step.start = std::min(step.start, row[4].get<std::int64_t>());
      step.end = std::max(step.end, row[5].get<std::int64_t>());
      step.busy += row[5].get<std::int64_t>() - row[4].get<std::int64_t>();
    }
  }
  Truth truth;
  for (const auto& [_, step] : steps) {
    const auto span = static_cast<double>(step.end - step.start);
    truth.step_ns += span / static_cast<double>(steps.size());
    truth.bubble +=
        (1 - static_cast<double>(step.busy) / (kRanks * span)) / static_cast<double>(steps.size());
  }
  return truth;
}

struct Run {
  const char* folder;
  const char* schedule;
};

constexpr Run kRuns[] = {
    {"1F1B", "1f1b"}, {"GPipe", "gpipe"}, {"DualPipeV", "dualpipev"}, {"csv-zbh1", "zb-h1"}};

class PytorchProfiles : public testing::TestWithParam<Run> {};

TEST_P(PytorchProfiles, GiveTheTrueBubbleStepAndSchedule) {
  const std::string folder = std::string("traces/pytorch/") + GetParam().folder;
  if (const std::string missing = missing_reference(folder + "/rank0.json.gz"); !missing.empty())
    GTEST_SKIP() << missing;
  const std::string path = reference_folder() + "/" + folder;
  const Truth truth = read_truth(path);
  const Json report = read_report("analyze " + path);
  EXPECT_NE(report["trust"]["verdict"], "none") << report["trust"];
  ASSERT_FALSE(report["bubble"].is_null());
  EXPECT_NEAR(report["bubble"]["ratio"].get<double>(), truth.bubble, 0.005);
  EXPECT_NEAR(report["step_ns"].get<double>(), truth.step_ns, 0.01 * truth.step_ns);
  EXPECT_NEAR(report["makespan_ns"].get<double>(), truth.step_ns, 0.01 * truth.step_ns);
  EXPECT_LE(report["lower_bound_ns"], report["makespan_ns"]);
  EXPECT_EQ(report["schedule"], GetParam().schedule);
  EXPECT_EQ(report["iterations"], 2);
}

/// The time after `word` in a report, such as "1.152 s", in seconds; 0 if the word is missing.
double seconds_behind(const std::string& text, const std::string& word) {
  const std::size_t at = text.find(word);
  if (at == text.npos) return 0;
  double value = 0;
  std::string unit;
  std::istringstream(text.substr(at + word.size())) >> value >> unit;
  return unit.starts_with("ms") ? value / 1e3 : unit.starts_with("us") ? value / 1e6 : value;
}

// All four processes share a host, so messages take less than a millisecond. The time in which a
// send waits for its receiver must not count as travel time.
TEST_P(PytorchProfiles, CriticalPathsAreComputing) {
  const std::string folder = std::string("traces/pytorch/") + GetParam().folder;
  if (const std::string missing = missing_reference(folder + "/rank0.json.gz"); !missing.empty())
    GTEST_SKIP() << missing;
  const CommandOutcome outcome = run_command("analyze " + reference_folder() + "/" + folder);
  ASSERT_EQ(outcome.status, 0);
  const std::string path = outcome.output.substr(outcome.output.find("critical path"));
  EXPECT_LT(seconds_behind(path, "messages "), 0.05) << path;
  EXPECT_LT(seconds_behind(path, "waiting "), 0.05) << path;
}

// Equal stages take as long as if every op took the mean time: two lines of a report that answer
// one question agree.
TEST_P(PytorchProfiles, BalancedStagesTakeTheTimeOfMeanOps) {
  const std::string folder = std::string("traces/pytorch/") + GetParam().folder;
  if (const std::string missing = missing_reference(folder + "/rank0.json.gz"); !missing.empty())
    GTEST_SKIP() << missing;
  const Json report = read_report("analyze " + reference_folder() + "/" + folder);
  if (report["causes"].is_null()) GTEST_SKIP() << "no causes are known";
  const Json& slowdown = report["slowdown"];
  const double fixed = slowdown["fixed_ns"].get<double>();
  for (const Json& cause : report["causes"]) {
    const double left = slowdown["replayed_ns"].get<double>() - cause["saves_ns"].get<double>();
    EXPECT_GT(left, 0.99 * fixed) << cause;
    if (cause["cause"] == "stage") {
      EXPECT_LT(left, 1.02 * fixed) << cause;
    }
  }
}

// Costs that are fitted to one run predict the step of every other.
TEST_P(PytorchProfiles, GiveCostsThatPredictTheOtherRuns) {
  const std::string root = "traces/pytorch/";
  if (const std::string missing = missing_reference(root + GetParam().folder + "/rank0.json.gz");
      !missing.empty())
    GTEST_SKIP() << missing;
  const std::string costs = (std::filesystem::temp_directory_path() /
                             (std::to_string(getpid()) + GetParam().schedule + "-costs.json"))
                                .string();
  ASSERT_EQ(run_command("analyze " + reference_folder() + "/" + root + GetParam().folder +
                        " --split-b 0.5 --costs-out " + costs)
                .status,
            0);
  for (const auto& other : kRuns) {
    const double step = read_truth(reference_folder() + "/" + root + other.folder).step_ns;
    const Json report =
        read_report(std::string("simulate ") + other.schedule + " --pp 4 -m 8 --costs " + costs);
    const double predicted = report["noise"].is_null() ? report["makespan_ns"].get<double>()
                                                       : report["noise"]["mean_ns"].get<double>();
    EXPECT_NEAR(predicted, step, 0.02 * step) << GetParam().schedule << " -> " << other.schedule;
  }
  std::filesystem::remove(costs);
}

INSTANTIATE_TEST_SUITE_P(Recorded, PytorchProfiles, testing::ValuesIn(kRuns),
                         [](const testing::TestParamInfo<Run>& run) {
                           std::string name = run.param.folder;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace bubblescope::tests
