// Tests folders that contain other files besides traces: some are left out, others refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/support/command.h"
#include "tests/support/rank_profile.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

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

/// One step of a rank, as PyTorch's profiler records it: 60 us from the first op to the last.
std::string profile_of(int rank, int step) {
  const int start = 1000 * step;
  RankProfile profile(rank);
  profile.process(10 + rank).annotation("ProfilerStep#" + std::to_string(step), start, 200);
  const int forward = start + 10 * rank;
  const int backward = start + 40 - 20 * rank;
  const std::string stage = std::to_string(rank);
  return profile.annotation("PP:" + stage + "F0", forward, 10)
      .call("aten::mm", forward, 10)
      .annotation("PP:" + stage + "B0", backward, 20)
      .gradient(backward, 20)
      .text();
}

// As torchtitan writes them: a folder for every profiled iteration, beside checkpoints and logs.
TEST_F(TraceFolders, OfIterationsOfOneJobAreReadTogether) {
  const std::string root = path("outputs");
  for (const int step : {20, 3}) {
    const std::string inner = root + "/profile_traces/iteration_" + std::to_string(step);
    std::filesystem::create_directories(inner);
    for (const int rank : {0, 1})
      traces::write_file(inner + "/rank" + std::to_string(rank) + "_trace.json",
                         profile_of(rank, step));
  }
  std::filesystem::create_directories(root + "/checkpoint/step-20");
  traces::write_file(root + "/checkpoint/step-20/model.index.json", R"({"weight_map":{}})");
  traces::write_file(root + "/config.json", R"({"pp":2})");
  const Json report = read_report("analyze " + root);
  EXPECT_EQ(report["makespan_ns"], 60'000);
  EXPECT_EQ(report["iterations"], 2);
  EXPECT_NE(report["notes"].dump().find(root + " itself holds no trace; read were those in " +
                                        root + "/profile_traces/iteration_3, " + root +
                                        "/profile_traces/iteration_20"),
            std::string::npos)
      << report["notes"];

  traces::write_file(root + "/rank0.json", R"([{"ph":)");
  const CommandOutcome outcome = run_with_messages("analyze " + root);
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("rank0.json:1:"), std::string::npos) << outcome.output;
}

TEST_F(TraceFolders, AreReadWhereTheyAreTheOnlyOnes) {
  const std::string root = path("only");
  std::filesystem::create_directories(root + "/a/b");
  std::filesystem::rename(path("rank0.json"), root + "/a/b/rank0.json");
  std::filesystem::rename(path("rank1.json"), root + "/a/b/rank1.json");
  const Json report = read_report("analyze " + root + "/");
  EXPECT_EQ(report["makespan_ns"], 60'000);
  EXPECT_NE(report["notes"].dump().find("read were those in " + root + "/a/b"), std::string::npos)
      << report["notes"];
}

// A folder for every rank holds a part of one job.
TEST_F(TraceFolders, OfRanksAreReadTogether) {
  for (const char* inner : {"", "/out"}) {
    const std::string job = path("job") + (*inner == '\0' ? "0" : "1");
    for (const auto& [rank, op] : {std::pair{"rank_0", "0"}, std::pair{"rank_1", "1"}}) {
      const std::string folder = job + "/" + rank + inner;
      std::filesystem::create_directories(folder);
      traces::write_file(folder + "/trace.json", *op == '0' ? trace("0F0", 0, 10, "0B0", 40)
                                                            : trace("1F0", 10, 10, "1B0", 20));
    }
    EXPECT_EQ(read_report("analyze " + job)["makespan_ns"], 60'000);
  }
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
    EXPECT_NE(outcome.output.find("there are traces in " + jobs + "/" + first + ", " + jobs + "/" +
                                  second + ": give those of one run"),
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

// The names in a file are its own; what to do about them is not.
TEST_F(TraceFolders, SayOnceWhatToDo) {
  for (const int rank : {0, 1}) {
    RankProfile profile(rank);
    profile.annotation("ProfilerStep#1", 0, 100).annotation(rank == 0 ? "load" : "save", 10, 20);
    write("rank" + std::to_string(rank) + ".json", profile.call("aten::mm", 40, 10).text());
  }
  const std::string text = analyze().output;
  const auto count = [&](const std::string& words) {
    int found = 0;
    for (std::size_t at = 0; (at = text.find(words, at)) != text.npos; ++at) ++found;
    return found;
  };
  for (const char* advice : {"annotate the ops: ", "put each op into its op()", "tools/hooks/"})
    EXPECT_EQ(count(advice), 1) << advice << "\n" << text;
  for (const char* own : {"\n  rank0.json: there is no pipeline op", "'load' (1 like it)\n",
                          "\n  rank1.json: there is no pipeline op", "'save' (1 like it)\n"})
    EXPECT_EQ(count(own), 1) << own << "\n" << text;
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

// A profiler with a schedule that repeats writes such a file where the training ends.
TEST_F(TraceFolders, LeaveOutRecordingsInWhichNothingRan) {
  write("rank2.json",
        R"x({"schemaVersion":1,"traceEvents":[{"ph":"X","cat":"user_annotation","pid":9,"tid":1,)x"
        R"x("name":"ProfilerStep#4","ts":100,"dur":5},)x"
        R"x({"ph":"X","cat":"Trace","pid":"Spans","tid":"PyTorch Profiler","ts":100,"dur":5,)x"
        R"x("name":"PyTorch Profiler (0)"}]})x");
  CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("left out of ")) << outcome.output;
  outcome = run_with_messages("analyze " + path("rank0.json") + " " + path("rank1.json") + " " +
                              path("rank2.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("rank2.json: nothing ran in this recording"), std::string::npos)
      << outcome.output;
  outcome = run_with_messages("analyze " + path("rank2.json"));
  EXPECT_EQ(outcome.status, 2) << outcome.output;
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
