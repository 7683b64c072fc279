// From the recorded costs of the runs in traces/measured, the simulator still predicts what it
// predicted when they were measured, so its recorded errors still hold.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/test_paths.h"
#include "tools/commands/step_clocks.h"
#include "tools/inputs/inputs.h"
#include "tools/inputs/predict.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

/// The project's records, or those in a folder that the environment names.
std::vector<std::filesystem::path> recorded_runs() {
  const char* const named = std::getenv("BUBBLESCOPE_MEASURED");
  const std::filesystem::path folder =
      named != nullptr ? named : std::filesystem::path(source_folder()) / "traces" / "measured";
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& machine : std::filesystem::directory_iterator(folder))
    if (std::filesystem::exists(machine.path() / "runs.json"))
      files.push_back(machine.path() / "runs.json");
  return files;
}

/// Predicts one run from costs that are written to a file for it.
Nanos predict_again(const Json& run, const Json& costs) {
  const std::string file =
      (std::filesystem::temp_directory_path() / (std::to_string(getpid()) + "-measured.json"))
          .string();
  traces::write_file(file, costs.dump());
  tools::PredictOptions flags;
  flags.shape.ranks = run["pp"].get<std::int32_t>();
  if (run["vpp"] != 1) flags.shape.chunks = run["vpp"].get<std::int32_t>();
  flags.shape.microbatches = run["microbatches"].get<std::int32_t>();
  flags.cost.file = file;
  const std::string schedule = run["schedule"].get<std::string>();
  tools::PredictInputs inputs = tools::read_inputs(std::move(flags), {schedule});
  if (run.contains("sm_mhz") && !run["sm_mhz"].is_null())
    if (const auto scaled = tools::at_clock(inputs, run["pp"].get<std::int32_t>(),
                                            run["sm_mhz"]["measured"].get<double>()))
      inputs = *scaled;
  const Nanos makespan = tools::predict_timed_step(schedule, inputs).report.makespan;
  std::filesystem::remove(file);
  return makespan;
}

TEST(MeasuredRuns, ArePredictedAsTheyWereAndErrByAsMuch) {
  const auto files = recorded_runs();
  if (files.empty()) GTEST_SKIP() << "traces/measured holds no runs";
  for (const auto& file : files) {
    const Json measured = Json::parse(traces::read_file(file.string()));
    int again = 0;
    for (const Json& run : measured["runs"]) {
      if (run["costs"].is_null()) continue;
      SCOPED_TRACE(file.string() + ": " + run["schedule"].get<std::string>());
      const Nanos predicted =
          predict_again(run, measured["costs"].at(run["costs"].get<std::string>()));
      EXPECT_EQ(predicted, run["predicted_ns"].get<Nanos>());
      const double error =
          std::abs(run["measured_ns"].get<double>() - static_cast<double>(predicted)) /
          static_cast<double>(predicted);
      EXPECT_NEAR(error, run["error"]["makespan"].get<double>(), 1e-6);
      ++again;
    }
    EXPECT_GT(again, 0) << file;
  }
}

}  // namespace
}  // namespace bubblescope::tests
