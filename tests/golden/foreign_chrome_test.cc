// Tests Chrome traces of other programs, which number ranks, processes and files in their own ways.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

constexpr int kRanks = 4;

std::string text(int number) { return std::to_string(number); }

std::string event(const std::string& name, int pid, int tid, int start, int duration,
                  const std::string& arguments = "") {
  return R"({"ph":"X","name":")" + name + R"(","pid":)" + text(pid) + R"(,"tid":)" + text(tid) +
         R"(,"ts":)" + text(start) + R"(,"dur":)" + text(duration) + R"(,"args":{)" + arguments +
         "}}";
}

class ForeignChrome : public TemporaryFolder {
 protected:
  void write(const std::string& name, const std::string& events) const {
    traces::write_file(path(name), "[" + events + "]");
  }

  /// Writes 8 forwards of 10 us for every rank, in a file each. Rank r begins 11 us later than the
  /// one before it, so the step takes 80 + 3 * 11 us = 113 us, of which 29.2 % are idle.
  void write_forwards(const std::string& prefix, bool name_stages, int pid = 0) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      std::string events;
      for (int microbatch = 0; microbatch < 8; ++microbatch)
        events +=
            (events.empty() ? "" : ",") +
            event(name_stages ? text(rank) + "F" + text(microbatch) : "Forward " + text(microbatch),
                  pid, 1, 11 * rank + 10 * microbatch, 10);
      write(prefix + text(rank) + ".json", events);
    }
  }

  CommandOutcome analyze() const { return run_with_messages("analyze " + folder_.string()); }
};

TEST_F(ForeignChrome, FilesWithOneProcessNumberAreRanksByTheirNames) {
  write_forwards("rank", false);
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(
      outcome.output.find("no file states its rank, so the numbers in the names of the 4 files "
                          "count as ranks: rank0.json, rank1.json"),
      std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("forward-only: 4 ranks, 8 micro-batches"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("ratio 29.2 %"), std::string::npos) << outcome.output;
}

// Each file may number its only process 0.
TEST_F(ForeignChrome, AFileOfALaterRankAloneHasNoBubble) {
  write_forwards("rank", false);
  const CommandOutcome outcome = run_with_messages("analyze " + path("rank3.json"));
  EXPECT_TRUE(
      outcome.output.starts_with("not trusted: there are traces of rank 3, but none of 0 to 2"))
      << outcome.output;
}

// Devices count as ranks in their order, whether a file is named after one or its process is.
TEST_F(ForeignChrome, FilesOfLaterDevicesMissTheFirst) {
  write_forwards("gpu", false);
  const std::string later = "analyze " + path("gpu2.json") + " " + path("gpu3.json");
  for (const std::string& command : {later, "analyze " + path("gpu3.json")}) {
    const CommandOutcome outcome = run_with_messages(command);
    EXPECT_TRUE(outcome.output.starts_with("not trusted: there are traces of rank"))
        << outcome.output;
    EXPECT_NE(outcome.output.find(", by the numbers of their devices"), std::string::npos)
        << outcome.output;
  }
}

// Ops that state their stages are better evidence than the names of files.
TEST_F(ForeignChrome, FilesWithOneProcessNumberAreRanksByTheirStages) {
  write_forwards("b", true);
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("forward-only: 4 ranks, 8 micro-batches"), std::string::npos)
      << outcome.output;
  EXPECT_EQ(outcome.output.find("count as ranks"), std::string::npos) << outcome.output;
}

TEST_F(ForeignChrome, FilesThatNothingTellsApartAreRefused) {
  write_forwards("iteration_", false);
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("nothing tells the ranks of 4 files apart"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("args.pp_rank"), std::string::npos) << outcome.output;
}

// Every rank counts its own stages from 0.
TEST_F(ForeignChrome, FilesOfOneStageAreNoPipeline) {
  for (int rank = 0; rank < kRanks; ++rank)
    write("rank" + text(rank) + ".json",
          event("0F0", 0, 1, 11 * rank, 10) + "," + event("0F1", 0, 1, 11 * rank + 10, 10));
  const CommandOutcome outcome = analyze();
  EXPECT_TRUE(outcome.output.starts_with("not trusted: all 4 files run one stage and no other"))
      << outcome.output;
}

// A file is a whole pipeline, and both run the same stages.
TEST_F(ForeignChrome, FilesOfTheSameRanksAndStagesAreReplicas) {
  for (int replica = 0; replica < 2; ++replica)
    write("dp" + text(replica) + ".json",
          event("0F0", 0, 1, replica, 10) + "," + event("1F0", 1, 1, 11 + replica, 10));
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("2 ranks"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("replica 1"), std::string::npos) << outcome.output;
}

TEST_F(ForeignChrome, FilesOfTheSameRanksWithoutStagesAreRefused) {
  for (int node = 0; node < 2; ++node)
    write("node" + text(node) + ".json", event("Forward 0", 0, 1, 22 * node, 10) + "," +
                                             event("Forward 0", 1, 1, 22 * node + 11, 10));
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 2) << outcome.output;
  EXPECT_NE(outcome.output.find("nothing tells the ranks of 2 files apart"), std::string::npos)
      << outcome.output;
}

// One micro-batch on four devices in turn: each is busy for 30 of 120 us.
TEST_F(ForeignChrome, ThreadsOfDevicesAreRanks) {
  std::string events;
  for (int rank = 0; rank < kRanks; ++rank)
    events += (events.empty() ? "" : ",") + event(text(rank) + "F0", 0, rank, 10 * rank, 10) + "," +
              event(text(rank) + "B0", 0, rank, 100 - 20 * rank, 20) +
              R"(,{"ph":"M","name":"thread_name","pid":0,"tid":)" + text(rank) +
              R"(,"args":{"name":"GPU )" + text(rank) + "\"}}";
  write("t.json", events);
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("4 ranks, 1 micro-batch"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("named after: GPU 0, GPU 1, GPU 2, GPU 3"), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("75"), std::string::npos) << outcome.output;
}

// Its events state the iteration at both ends, and all else where they end.
TEST_F(ForeignChrome, MegatronAppsTracesAreRead) {
  std::string events;
  const auto add = [&](const char* name, int rank, int chunk, int start, int duration) {
    const std::string place =
        R"(","cname":"thread_state_running","pid":)" + text(rank) + R"(,"tid":1,"ts":)";
    const std::string iteration = R"(,"args":{"iteration":10)";
    events += (events.empty() ? "" : ",") + (R"({"ph":"B","name":")" + std::string(name)) + place +
              text(start) + iteration + R"(}},{"ph":"E","name":")" + name + place +
              text(start + duration) + iteration + R"(,"microbatch":0,"model_chunk":)" +
              text(chunk) + R"(,"pp_rank":)" + text(rank) + "}}";
  };
  for (int stage = 0; stage < 4; ++stage) {
    add("forward", stage % 2, stage / 2, 10 * stage, 10);
    add("backward", stage % 2, stage / 2, 100 - 20 * stage, 20);
  }
  write("t.json", events);
  const CommandOutcome outcome = analyze();
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("2 ranks, 2 chunks each, 1 micro-batch"), std::string::npos)
      << outcome.output;
}

// Two steps of 2 x 2 forwards (30 us), and on rank 1 a slice of 40 us around each. It may be the
// step, so that the step is not known; the pipeline is.
TEST_F(ForeignChrome, ASliceAroundAStepThatMayBeItLeavesTheStepOpen) {
  for (const char* const name : {"run_batch", "train_step"}) {
    std::string events;
    for (int step = 0; step < 2; ++step) {
      for (int rank = 0; rank < 2; ++rank)
        for (int microbatch = 0; microbatch < 2; ++microbatch)
          events += event(text(rank) + "F" + text(microbatch), rank, 1,
                          100 * step + 10 * (rank + microbatch), 10, R"("step":)" + text(step)) +
                    ",";
      events += event(name, 1, 2, 100 * step, 40) + (step == 0 ? "," : "");
    }
    write("t.json", events);
    const bool is_open = std::string(name) == "run_batch";
    const std::string command = "analyze " + path("t.json");
    const auto expect = [&](const std::string& more, const std::string& open,
                            const std::string& known) {
      const std::string output = run_with_messages(command + more).output;
      EXPECT_NE(output.find(is_open ? open : known), output.npos) << output;
    };
    expect(" --format json", R"("step_ns":null,"steps":[)", R"("step_ns":40000,"steps":[)");
    expect(" --format json", R"("makespan_ns":30000)", R"("makespan_ns":30000)");
    expect("", "step         at least 30 us  whole", "step         40 us  whole");
    expect(" --each", ",2,,30000,", ",2,40000,30000,");
    const CommandOutcome gate = run_with_messages(command + " --fail-if 'step_ns>35000'");
    EXPECT_EQ(gate.status, 1);
    EXPECT_EQ(gate.output.find("step_ns is not known of these steps") != std::string::npos, is_open)
        << gate.output;
  }
}

}  // namespace
}  // namespace bubblescope::tests
