// Tests folders that contain other files besides traces: some are left out, others refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

/// rank0.json and rank1.json hold one forward and one backward each.
class TraceFolders : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write("rank0.json", trace("0F0", 0, 10, "0B0", 40));
    write("rank1.json", trace("1F0", 10, 10, "1B0", 20));
  }

  void write(const std::string& name, const std::string& content) const {
    traces::write_file(path(name), content);
  }

  /// A slice whose process id is the stage.
  static std::string slice(const std::string& op, int start, int duration) {
    return R"({"ph":"X","tid":0,"pid":)" + op.substr(0, 1) + R"(,"name":"PP:)" + op + R"(","ts":)" +
           std::to_string(start) + R"(,"dur":)" + std::to_string(duration) + "}";
  }

  static std::string trace(const std::string& forward, int start, int duration,
                           const std::string& backward, int backward_start) {
    return "[" + slice(forward, start, duration) + "," + slice(backward, backward_start, 20) + "]";
  }

  CommandOutcome analyze() const { return run_with_messages("analyze " + folder_.string()); }
};

TEST_F(TraceFolders, BeginWithWhatIsLeftOut) {
  write("README.md", "how this was recorded");
  write("config.json", R"({"layers":32})");
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("left out of ")) << outcome.output;
  const std::string first = outcome.output.substr(0, outcome.output.find('\n'));
  EXPECT_NE(first.find("README.md, config.json"), std::string::npos) << first;
}

TEST_F(TraceFolders, SayNothingWhereAllWasRead) {
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("left out"), std::string::npos) << outcome.output;
}

TEST_F(TraceFolders, WithoutTracesAreDescribedByWhatTheyHold) {
  for (const char* name : {"rank0.json", "rank1.json"}) std::filesystem::remove(path(name));
  CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("there is no file in it"), std::string::npos) << outcome.output;
  write("LICENSE", "Apache License");
  write("README.md", "how this was recorded");
  outcome = analyze();
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(
      outcome.output.find("holds no trace of a pipeline; looked at 2 files: LICENSE, README.md"),
      std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("LICENSE is"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("Nsight Systems"), std::string::npos) << outcome.output;
}

TEST_F(TraceFolders, WithoutTracesNameTheFoldersThatHoldThem) {
  const std::string jobs = path("jobs");
  for (const char* job : {"iteration_20", "iteration_3", "notes"}) {
    std::filesystem::create_directories(jobs + "/" + job);
    const bool is_job = std::string(job) != "notes";
    traces::write_file(jobs + "/" + job + (is_job ? "/rank0.json" : "/README"),
                       trace("0F0", 0, 10, "0B0", 40));
  }
  const CommandOutcome outcome = run_with_messages("analyze " + jobs);
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("there are files like traces in " + jobs + "/iteration_3, " + jobs +
                                "/iteration_20: give one of them"),
            std::string::npos)
      << outcome.output;
}

// A folder for every rank holds parts of one job.
TEST_F(TraceFolders, OfRanksAreGivenTogether) {
  const std::string job = path("job");
  for (const char* rank : {"rank_0", "rank_1"}) {
    std::filesystem::create_directories(job + "/" + rank);
    traces::write_file(job + "/" + rank + "/trace.json", trace("0F0", 0, 10, "0B0", 40));
  }
  const CommandOutcome outcome = run_with_messages("analyze " + job);
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("there are files like traces in " + job + "/rank_0, " + job +
                                "/rank_1: give all: " + job + "/*/*"),
            std::string::npos)
      << outcome.output;
}

// Ascend's profiler writes the trace of a process into a folder within that of the process, beside
// tables and descriptions.
TEST_F(TraceFolders, OfAscendProcessesAreGivenTogether) {
  const std::string job = path("job");
  const std::string inner = "/ASCEND_PROFILER_OUTPUT";
  for (const char* name : {"/node0_100_2026_ascend_pt", "/node0_107_2026_ascend_pt"}) {
    std::filesystem::create_directories(job + name + inner);
    traces::write_file(job + name + inner + "/trace_view.json", trace("0F0", 0, 10, "0B0", 40));
    traces::write_file(job + name + inner + "/kernel_details.csv", "Step Id");
    traces::write_file(job + name + "/profiler_info_0.json", "{}");
  }
  const CommandOutcome outcome = run_with_messages("analyze " + job);
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find(job + "/node0_107_2026_ascend_pt" + inner +
                                ": each is of one process; give all of one run: " + job +
                                "/*/*/trace_view.json"),
            std::string::npos)
      << outcome.output;
}

// One folder of a run within the folder, or one in the folder of each rank.
TEST_F(TraceFolders, OfRanksThatLieDeeperAreGivenTogether) {
  const auto advice_of = [&](const std::string& name, const std::string& first,
                             const std::string& second) {
    for (const std::string& rank : {first, second}) {
      std::filesystem::create_directories(path(name) + rank);
      traces::write_file(path(name) + rank + "/trace.json", trace("0F0", 0, 10, "0B0", 40));
    }
    return run_with_messages("analyze " + path(name)).output;
  };
  const std::string one_run = advice_of("run", "/today/rank_0", "/today/rank_1");
  EXPECT_NE(one_run.find("give all: " + path("run") + "/today/*/*"), std::string::npos) << one_run;
  const std::string one_each = advice_of("each", "/rank_0/out", "/rank_1/out");
  EXPECT_NE(one_each.find("give all: " + path("each") + "/*/*/*"), std::string::npos) << one_each;
}

// Folders of two runs hold parts of two jobs, whether ranks repeat or names differ.
TEST_F(TraceFolders, OfSeveralRunsAreNotGivenTogether) {
  for (const auto& [first, second] :
       {std::pair{"run1_rank0", "run2_rank0"}, std::pair{"first_rank0", "second_rank1"}}) {
    const std::string jobs = path(first) + "_jobs";
    for (const char* name : {first, second}) {
      std::filesystem::create_directories(jobs + "/" + name);
      traces::write_file(jobs + "/" + name + "/trace.json", trace("0F0", 0, 10, "0B0", 40));
    }
    const CommandOutcome outcome = run_with_messages("analyze " + jobs);
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find("there are files like traces in " + jobs + "/" + first + ", " +
                                  jobs + "/" + second + ": give those of one run"),
              std::string::npos)
        << outcome.output;
  }
}

// A file that looks like a trace is described, though it is not the first one.
TEST_F(TraceFolders, WithoutTracesSayWhatIsWrongWithThoseThatLookLikeOnes) {
  for (const char* name : {"rank0.json", "rank1.json"}) std::filesystem::remove(path(name));
  write("LICENSE", "Apache License");
  write("rank0.json", "[{\"ph\":");
  write("train.log", "max time across ranks (ms):\n    forward-compute ....: 10.00\n");
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("looked at 3 files"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("rank0.json:1:"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("train.log is a log of timers: give it by itself"),
            std::string::npos)
      << outcome.output;
}

TEST_F(TraceFolders, RefuseADamagedTraceByName) {
  const std::string whole = "{\"traceEvents\":" + trace("2F0", 20, 10, "2B0", 30) + "}";
  for (const char* name : {"rank2.json", "worker-b.json"}) {
    write(name, whole.substr(0, whole.size() / 2));
    const CommandOutcome outcome = analyze();
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(name), std::string::npos) << outcome.output;
    EXPECT_NE(outcome.output.find("record or repair it, or move it elsewhere"), std::string::npos)
        << outcome.output;
    std::filesystem::remove(path(name));
  }
}

TEST_F(TraceFolders, RefuseWhatIsNamedLikeATraceButIsNone) {
  for (const char* content : {"", "[]", R"({"traceEvents":[]})"}) {
    write("rank2.json", content);
    const CommandOutcome outcome = analyze();
    EXPECT_EQ(outcome.status, 2) << outcome.output;
    EXPECT_NE(outcome.output.find("rank2.json"), std::string::npos) << outcome.output;
  }
}

TEST_F(TraceFolders, OpsThatTakeNoTimeAreAStepWithoutTime) {
  write("t.csv",
        "rank,lane,op,kind,stage,microbatch,start_ns,end_ns,slack_ns,critical\n"
        "0,compute,0F0,F,0,0,0,0,0,1\n");
  const CommandOutcome outcome = run_with_messages("analyze " + path("t.csv"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(outcome.output.find("nan"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace bubblescope::tests
