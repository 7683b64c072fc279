// Profiles that PyTorch wrote on a GPU, compared with what events of the device say
// (traces/measured/h200-141gb/pytorch, made by tests/pytorch/record_on_gpu.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_paths.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr int kRanks = 4;
constexpr std::size_t kSteps = 2;

std::string folder_of(const std::string& name) {
  return source_folder() + "/traces/measured/h200-141gb/pytorch/" + name;
}

/// From the first op of a step to its last, the mean of the steps. Rows: [op, start ns, end ns].
double noted_makespan(const std::string& folder) {
  std::vector<double> start(kSteps, std::numeric_limits<double>::max());
  std::vector<double> end(kSteps, 0);
  for (int rank = 0; rank < kRanks; ++rank) {
    const Json rows =
        Json::parse(traces::read_file(folder + "/notes" + std::to_string(rank) + ".json"));
    for (std::size_t at = 0; at < rows.size(); ++at) {
      const std::size_t step = at * kSteps / rows.size();
      start[step] = std::min(start[step], rows[at][1].get<double>());
      end[step] = std::max(end[step], rows[at][2].get<double>());
    }
  }
  double sum = 0;
  for (std::size_t step = 0; step < kSteps; ++step) sum += end[step] - start[step];
  return sum / static_cast<double>(kSteps);
}

/// The files of a recorded case, as arguments.
std::string files_of(const std::string& name) {
  std::string files;
  for (int rank = 0; rank < kRanks; ++rank)
    files += " " + folder_of(name) + "/rank" + std::to_string(rank) + ".json.gz";
  return files;
}

/// The report of `analyze` on a recorded case.
Json analyze(const std::string& name) { return read_report("analyze" + files_of(name)); }

// The input gradients of the first stage launch nothing, and the host passes them before the device
// has reached the forwards. Messages take 40 times as long as ops, and wait for each other.
TEST(GpuProfiles, AZeroBubbleScheduleTakesTheTimeOfItsEvents) {
  const Json report = analyze("zb-v");
  EXPECT_EQ(report["schedule"], "zb-v");
  EXPECT_EQ(report["microbatches"], 8);
  const double noted = noted_makespan(folder_of("zb-v"));
  EXPECT_NEAR(report["makespan_ns"].get<double>(), noted, 0.005 * noted);
  EXPECT_NE(report["trust"]["verdict"], "none");
  EXPECT_LT(report["trust"]["replay_error"].get<double>(), 0.02);
  EXPECT_NEAR(report["bubble"]["ratio"].get<double>(), 0.953, 0.005);  // of the events
}

// Neither ops nor messages have names, and one kernel sends and receives. The event before the
// first forward is of the time when it was launched, 5 and 7 ms before its first kernel: the device
// still ran other processes. So the makespan is shorter by as much.
TEST(GpuProfiles, AScheduleWithoutNamesIsReproducedByItsMessages) {
  const Json report = analyze("1f1b");
  EXPECT_EQ(report["schedule"], "1f1b");
  EXPECT_EQ(report["microbatches"], 8);
  const double noted = noted_makespan(folder_of("1f1b"));
  EXPECT_NEAR(report["makespan_ns"].get<double>(), noted - 5.8e6, 0.005 * noted);
  EXPECT_EQ(report["trust"]["verdict"], "good");
  EXPECT_LT(report["trust"]["replay_error"].get<double>(), 0.005);
}

class GpuProfileCosts : public TemporaryFolder {};

// One latency for all messages cannot say that they wait for each other, over one loopback.
TEST_F(GpuProfileCosts, SayHowFarTheyAreFromTheStep) {
  const std::string costs = path("costs.json");
  ASSERT_EQ(run_command("analyze" + files_of("zb-v") + " --costs-out " + costs).status, 0);
  const Json notes = Json::parse(traces::read_file(costs))["measured"]["notes"];
  ASSERT_FALSE(notes.empty());
  EXPECT_NE(notes.back().get<std::string>().find("it depends on something that they lack"),
            std::string::npos);
}

}  // namespace
}  // namespace bubblescope::tests
