// analyze of logs with timers: one, several, and in --each.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

class TimerLogs : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write_log("first.log", "1000.0");
    write_log("second.log", "1200.0");
    run_command("simulate 1f1b --pp 2 -m 4 --trace " + path("run.json"));
  }

  void write_log(const std::string& name, const std::string& iteration_ms) const {
    traces::write_file(
        path(name), " [2025-03-02 10:11:12] iteration 10/ 100 | elapsed time per iteration (ms): " +
                        iteration_ms +
                        " | learning rate: 1.0E-04 |\n"
                        "(min, max) time across ranks (ms):\n"
                        "    forward-compute ....: (200.00, 260.00)\n"
                        "    backward-compute ...: (400.00, 520.00)\n");
  }

  CommandOutcome analyze(const std::string& arguments) const {
    return run_with_messages("analyze " + arguments);
  }
};

TEST_F(TimerLogs, AreReportedOneAfterAnother) {
  const CommandOutcome outcome = analyze(path("first.log") + " " + path("second.log"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("first.log: no trace"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("second.log: no trace"), std::string::npos) << outcome.output;
  const CommandOutcome json =
      analyze(path("first.log") + " " + path("second.log") + " --format json");
  EXPECT_EQ(json.status, 2);
  EXPECT_NE(json.output.find("--each"), std::string::npos) << json.output;
  EXPECT_EQ(nlohmann::json::parse(analyze(path("first.log") + " --format json").output)["format"],
            "bubblescope-timers/1");
}

TEST_F(TimerLogs, AreNotMixedWithTraces) {
  for (const auto& paths :
       {path("first.log") + " " + path("run.json"), path("run.json") + " " + path("first.log")}) {
    const CommandOutcome outcome = analyze(paths);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find("first.log is a log of timers"), std::string::npos)
        << outcome.output;
  }
  EXPECT_NE(analyze(path("first.log") + " " + path("first.log")).output.find("given twice"),
            std::string::npos);
}

// A log is a job that was read, though it has only the time of an iteration.
TEST_F(TimerLogs, AreRowsOfEach) {
  const std::string jobs = "--each " + path("first.log") + " " + path("run.json") + " ";
  const CommandOutcome outcome = analyze(jobs);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("first.log,,,,,1000000000,,,,,,,,,a log of timers"),
            std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("run.json,1f1b,2,4,1,"), std::string::npos) << outcome.output;
  EXPECT_EQ(analyze(jobs + "--fail-if 'bubble_ratio>0.9'").status, 1);
}

TEST_F(TimerLogs, ThatAreDamagedAreProblemsOfEach) {
  traces::write_file(path("broken.log"),
                     "(min, max) time across ranks (ms):\n  a ..: (3.0, 1.0)\n");
  const CommandOutcome outcome = analyze("--each " + path("broken.log"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.output.find("broken.log:2:"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace bubblescope::tests
