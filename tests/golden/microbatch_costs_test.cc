// From a trace to times per micro-batch: analyze --costs-out --costs-per microbatch.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
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

class MicrobatchCosts : public TemporaryFolder {
 protected:
  /// Writes costs of stages whose micro-batches all differ; `times` are the keys.
  void write_costs(std::size_t stages, std::size_t microbatches,
                   const std::vector<std::string>& times) const {
    Json costs{{"format", "bubblescope-costs/1"}, {"message", {{"latency", "0.3ms"}}}};
    for (std::size_t key = 0; key < times.size(); ++key) {
      Json& lists = costs[times[key]]["per_microbatch"] = Json::array();
      for (std::size_t stage = 0; stage < stages; ++stage) {
        Json list = Json::array();
        for (std::size_t at = 0; at < microbatches; ++at)
          list.push_back(std::to_string(1'000'000 * (3 + key + stage) + 700'000 * (at * at % 5)) +
                         "ns");
        lists.push_back(list);
      }
    }
    std::ofstream(path("true.json")) << costs.dump();
  }

  /// Simulates with the true costs and records the step.
  Json record(const std::string& shape, const std::string& to = "run.json") const {
    return read_report("simulate " + shape + " --costs " + path("true.json") + " --trace " +
                       path(to));
  }

  CommandOutcome fit(const std::string& traces, const std::string& flags = "") const {
    return run_with_messages("analyze " + traces + " --costs-per microbatch --costs-out " +
                             path("costs.json") + " " + flags);
  }
};

// Every op has a time of its own, and the trace shows each, so any schedule takes as long with the
// fitted times as with the true ones.
TEST_F(MicrobatchCosts, AreThoseOfTheTrace) {
  write_costs(4, 8, {"forward", "input_grad", "weight_grad"});
  record("zb-h1 --pp 4 -m 8");
  const CommandOutcome outcome = fit(path("run.json"));
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("(+0.0 %)"), std::string::npos) << outcome.output;
  const Json fitted = Json::parse(traces::read_file(path("costs.json")));
  const Json truth = Json::parse(traces::read_file(path("true.json")));
  for (const std::string key : {"forward", "input_grad", "weight_grad"})
    EXPECT_EQ(fitted[key], truth[key]);
  EXPECT_FALSE(fitted.contains("stages"));
  EXPECT_FALSE(fitted.contains("noise"));
  for (const std::string schedule : {"zb-h1", "1f1b", "gpipe"})
    EXPECT_EQ(read_report("simulate " + schedule + " --pp 4 -m 8 --costs " +
                          path("costs.json"))["makespan_ns"],
              read_report("simulate " + schedule + " --pp 4 -m 8 --costs " +
                          path("true.json"))["makespan_ns"])
        << schedule;
}

// Some of zb-v's and dualpipev's backwards are whole, others split; chimera has two pipelines, and
// seq1f1b runs slices.
TEST_F(MicrobatchCosts, GiveTheMeasuredStepBackForAnySchedule) {
  struct Run {
    const char* shape;
    std::size_t stages;
    std::vector<std::string> times;
  };
  const std::vector<std::string> whole{"forward", "backward"};
  const std::vector<std::string> split{"forward", "backward", "input_grad", "weight_grad"};
  for (const Run& run :
       {Run{"1f1b --pp 4 -m 8", 4, whole}, Run{"zb-v --pp 4 -m 8", 8, split},
        Run{"dualpipev --pp 2 -m 8", 4, split}, Run{"interleaved --pp 2 --vpp 2 -m 8", 4, whole},
        Run{"chimera --pp 4 -m 8", 4, whole}, Run{"seq1f1b --pp 4 -m 8 --slices 2", 4, whole}}) {
    write_costs(run.stages, 8, run.times);
    const Json truth = record(run.shape);
    const CommandOutcome outcome = fit(path("run.json"));
    ASSERT_EQ(outcome.status, 0) << run.shape << outcome.output;
    const Json again =
        read_report(std::string("simulate ") + run.shape + " --costs " + path("costs.json"));
    EXPECT_EQ(again["makespan_ns"], truth["makespan_ns"]) << run.shape;
  }
}

// The micro-batches of one step have nothing to do with those of the other.
TEST_F(MicrobatchCosts, AreRefusedIfIterationsDiffer) {
  write_costs(4, 8, {"forward", "backward"});
  record("1f1b --pp 4 -m 8", "run.json");
  const std::string reversed = "r.json";
  Json costs = Json::parse(traces::read_file(path("true.json")));
  for (const std::string key : {"forward", "backward"})
    for (Json& list : costs[key]["per_microbatch"]) std::reverse(list.begin(), list.end());
  std::ofstream(path("true.json")) << costs.dump();
  record("1f1b --pp 4 -m 8", reversed);
  const CommandOutcome outcome = fit(path("run.json") + " " + path(reversed));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("iterations differ in their micro-batches"), std::string::npos)
      << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(path("costs.json")));
  write_costs(4, 6, {"forward", "backward"});
  record("1f1b --pp 4 -m 6", reversed);
  const CommandOutcome counts = fit(path("run.json") + " " + path(reversed));
  EXPECT_EQ(counts.status, 1);
  EXPECT_NE(counts.output.find("iterations have 8 and 6 micro-batches"), std::string::npos)
      << counts.output;
}

TEST_F(MicrobatchCosts, GoWithCostsOutAlone) {
  EXPECT_EQ(run_command("analyze run.json --costs-per microbatch").status, 2);
  EXPECT_EQ(
      run_command("analyze run.json --costs-per microbatch --costs-out c.json --try gpipe").status,
      2);
  EXPECT_EQ(run_command("analyze run.json --costs-per rank --costs-out c.json").status, 2);
}

// Two recorded steps of sleeping stages: what the profiler shows gives the step back.
TEST_F(MicrobatchCosts, GiveTheStepsOfPytorchBack) {
  struct Run {
    const char* folder;
    const char* schedule;
  };
  for (const Run& run : {Run{"1F1B", "1f1b"}, Run{"GPipe", "gpipe"}, Run{"csv-zbh1", "zb-h1"},
                         Run{"DualPipeV", "dualpipev"}}) {
    const std::string folder = std::string("traces/pytorch/") + run.folder;
    if (const std::string missing = missing_reference(folder + "/rank0.json.gz"); !missing.empty())
      GTEST_SKIP() << missing;
    const std::string trace = reference_folder() + "/" + folder;
    const CommandOutcome outcome = fit(trace);
    ASSERT_EQ(outcome.status, 0) << outcome.output;
    const double measured = read_report("analyze " + trace)["makespan_ns"].get<double>();
    const Json again = read_report(std::string("simulate ") + run.schedule +
                                   " --pp 4 -m 8 --costs " + path("costs.json"));
    EXPECT_NEAR(again["makespan_ns"].get<double>(), measured, 0.01 * measured) << run.folder;
  }
}

// Lengths of a production job differ in every step and replica.
TEST_F(MicrobatchCosts, AreRefusedForReplicas) {
  if (const std::string missing = missing_reference("traces/straggler/timeline-ST.json.gz");
      !missing.empty())
    GTEST_SKIP() << missing;
  const CommandOutcome outcome = fit(reference_folder() + "/traces/straggler/timeline-ST.json.gz");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("2 data-parallel replicas"), std::string::npos) << outcome.output;
}

// Exported files show every op, so the whole step is simulated for them; without them, only what
// the report shows.
TEST_F(MicrobatchCosts, ReportTheSameWithAndWithoutFiles) {
  write_costs(4, 40, {"forward", "input_grad", "weight_grad"});
  for (const std::string shape :
       {"1f1b --pp 4 -m 40", "zb-h1 --pp 4 -m 40 --all-ranks", "gpipe --pp 4 -m 40 --format csv",
        "interleaved --pp 2 --vpp 2 -m 40", "zb-v --pp 2 -m 40 --release half",
        "chimera --pp 4 -m 40"}) {
    const std::string command = "simulate " + shape + " --costs " + path("true.json");
    const CommandOutcome report = run_command(command);
    ASSERT_EQ(report.status, 0) << report.output;
    EXPECT_EQ(run_command(command + " --trace " + path("step.json")).output, report.output);
  }
}

}  // namespace
}  // namespace bubblescope::tests
