// Profiles that PyTorch wrote on a GPU, compared with what events of the device say
// (traces/measured/h200-141gb/pytorch, made by tests/pytorch/record_on_gpu.py).
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/test_paths.h"
#include "traces/files/format.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr int kRanks = 4;
constexpr std::size_t kSteps = 2;

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

// The input gradients of the first stage launch nothing, and the host passes them before the device
// has reached the forwards.
TEST(GpuProfiles, AZeroBubbleScheduleTakesTheTimeOfItsEvents) {
  const std::string folder = source_folder() + "/traces/measured/h200-141gb/pytorch/zb-v";
  std::string files;
  for (int rank = 0; rank < kRanks; ++rank)
    files += " " + folder + "/rank" + std::to_string(rank) + ".json.gz";
  const CommandOutcome outcome = run_command("analyze" + files + " --format json");
  ASSERT_EQ(outcome.status, 0);
  const Json report = Json::parse(outcome.output);
  EXPECT_EQ(report["schedule"], "zb-v");
  EXPECT_EQ(report["microbatches"], 8);
  const double noted = noted_makespan(folder);
  EXPECT_NEAR(report["makespan_ns"].get<double>(), noted, 0.005 * noted);
}

}  // namespace
}  // namespace bubblescope::tests
