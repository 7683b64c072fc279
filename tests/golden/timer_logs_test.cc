// analyze of logs with timers: one, several, and in --each.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

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

// The times of one rank say nothing of the others, and those of one iteration nothing of others.
TEST_F(TimerLogs, StateOnlyWhatTheirLinesSay) {
  const std::string iteration = "iteration 9/ 99 | elapsed time per iteration (ms): ";
  traces::write_file(path("old.log"), iteration +
                                          "430.0 |\ntime (ms) | forward-compute: 53.79 | "
                                          "backward-compute: 138.84 | optimizer: 49.42\n");
  const CommandOutcome outcome = analyze(path("old.log"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("Megatron-LM prints"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("which the log does not name"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("Every rank"), std::string::npos) << outcome.output;
  const auto report = nlohmann::json::parse(analyze(path("old.log") + " --format json").output);
  EXPECT_EQ(report["source"], "megatron");
  EXPECT_TRUE(report["outside_compute"].is_null());
  EXPECT_EQ(report["timers"][0]["is_of_all_ranks"], false);
  traces::write_file(path("restart.log"), traces::read_file(path("first.log")) + iteration +
                                              "4000.0 |\n" + iteration + "4000.0 |\n");
  EXPECT_NE(analyze(path("restart.log")).output.find("22.0 to 40.0 %"), std::string::npos);
}

TEST_F(TimerLogs, SayThatReportsAreCut) {
  const std::string begin = "elapsed time per iteration (ms): 1000.0 |\n";
  const std::string forward =
      "times across ranks (ms):\n  forward-compute:\n     rank  0: 100.00\n     rank  1: 310.00\n";
  const std::string backward = "  backward-compute:\n     rank  0: 200.00\n";
  const std::string warning = "x.py:77: UserWarning: something\n  warnings.warn(\n";
  traces::write_file(path("cut.log"), begin + forward + backward);
  const CommandOutcome cut = analyze(path("cut.log"));
  EXPECT_EQ(cut.output.find("Every rank"), std::string::npos) << cut.output;
  EXPECT_NE(cut.output.find("1 report without a share"), std::string::npos) << cut.output;
  traces::write_file(path("all.log"),
                     begin + forward + backward + warning + "     rank  1: 620.00\n");
  const CommandOutcome all = analyze(path("all.log"));
  EXPECT_NE(all.output.find("Every rank in the log spends 7.0 to 70.0 %"), std::string::npos)
      << all.output;
}

TEST_F(TimerLogs, OfSeveralWritersAreReportedOneAfterAnother) {
  std::string text;
  for (const std::string writer : {"worker-1: ", "worker-2: "})
    text += writer + "max time across ranks (ms):\n" + writer + "    optimizer ....: 30.00\n";
  traces::write_file(path("two.log"), text);
  const CommandOutcome outcome = analyze(path("two.log"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  for (const char* writer : {"worker-1:", "worker-2:"})
    EXPECT_NE(outcome.output.find("two.log (lines that begin with '" + std::string(writer) + "')"),
              std::string::npos)
        << outcome.output;
  for (const char* how : {" --format json", " --format csv", " --each"})
    EXPECT_NE(analyze(path("two.log") + how).output.find("has the timers of 2 writers"),
              std::string::npos)
        << how;
}

TEST_F(TimerLogs, MayBePacked) {
  traces::write_file(path("packed.log.gz"), traces::read_file(path("first.log")));
  const CommandOutcome outcome = analyze(path("packed.log.gz"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("22.0 to 40.0 %"), std::string::npos) << outcome.output;
  traces::write_file(path("trace.gz"), traces::read_file(path("run.json")));
  EXPECT_EQ(analyze(path("trace.gz")).status, 0);
}

// A stream is read once, whatever it turns out to be.
TEST_F(TimerLogs, MayBeStreams) {
  for (const std::string& from : {"- < " + path("first.log"), "/dev/stdin < " + path("first.log"),
                                  "- " + path("second.log") + " < " + path("first.log")}) {
    const CommandOutcome outcome = analyze(from);
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("22.0 to 40.0 %"), std::string::npos) << outcome.output;
  }
  EXPECT_NE(analyze("- < " + path("first.log")).output.find("timers of stdin: no trace"),
            std::string::npos);
  EXPECT_EQ(analyze("- --format json < " + path("first.log")).output.find("{\"format\":"), 0u);
  EXPECT_NE(analyze("--each - < " + path("first.log")).output.find(",,,,,1000000000,"),
            std::string::npos);
  EXPECT_EQ(analyze("- < " + path("run.json")).output, analyze(path("run.json")).output);
}

// Numbers that cannot be read are named in every format.
TEST_F(TimerLogs, NameUnreadableNumbersFirst) {
  traces::write_file(path("bad.log"), traces::read_file(path("first.log")) +
                                          "(min, max) time across ranks (ms):\n"
                                          "    forward-compute ....: (1,200.0, 1,260.0)\n");
  const std::string left_out = "left out: the report in line 6: '(1,200.0, 1,260.0)'";
  for (const char* how : {"", " --format csv", " --format json", " --each"})
    EXPECT_NE(analyze(path("bad.log") + how).output.find(left_out), std::string::npos) << how;
  EXPECT_TRUE(analyze(path("bad.log")).output.starts_with(left_out));
}

TEST_F(TimerLogs, OfAFolderAreReportedOneAfterAnother) {
  const std::string folder = path("logs");
  std::filesystem::create_directory(folder);
  for (const char* name : {"first.log", "second.log"})
    std::filesystem::copy_file(path(name), folder + "/" + name);
  traces::write_file(folder + "/README", "of two runs");
  const CommandOutcome outcome = analyze(folder);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("first.log: no trace"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("second.log: no trace"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("left out, as no logs of timers: " + folder + "/README"),
            std::string::npos)
      << outcome.output;
}

TEST_F(TimerLogs, ThatCannotBeReadSayWhy) {
  traces::write_file(path("bare.log"), "[rank0]:[titan] 2024-10-11 10:11:12,345 - step: 10\n");
  std::string wide = "\xFF\xFE";
  for (const char letter : traces::read_file(path("first.log"))) wide += {letter, '\0'};
  traces::write_file(path("wide.log"), wide);
  for (const auto& [arguments, reason] :
       {std::pair{path("bare.log"), "bare.log is a log without timers, and no trace: Megatron-LM"},
        std::pair{"- < " + path("bare.log"), "stdin is a log without timers"},
        std::pair{"--fail-if 'bubble_ratio>1' - < " + path("first.log"),
                  "stdin is a log of timers, which has no bubble"},
        std::pair{path("run.json") + " - < " + path("first.log"),
                  "stdin is a log of timers, which has nothing about the ops of "},
        std::pair{path("wide.log"), "wide.log is UTF-16"},
        std::pair{"- < " + path("wide.log"), "the standard input is UTF-16, as PowerShell"}}) {
    const CommandOutcome outcome = analyze(arguments);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(reason), std::string::npos) << outcome.output;
  }
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
