// Commands on schedules from files: what is refused, and what is said.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

class ScheduleFiles : public TemporaryFolder {
 protected:
  std::string save(const std::string& name, const std::string& content) const {
    std::ofstream(path(name)) << content;
    return path(name);
  }

  static void expect_says(const std::string& arguments, int status, const std::string& says) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(says), std::string::npos) << arguments << "\n" << outcome.output;
  }

  static void expect_does_not_say(const std::string& arguments, const std::string& text) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.output.find(text), std::string::npos) << arguments << "\n" << outcome.output;
  }
};

// Times were divided by 4 chunks, where a rank has one stage: 2.25 ms instead of 9 ms.
TEST_F(ScheduleFiles, WithMoreChunksThanStagesAreRefused) {
  const std::string file = save("ch4.json", R"({"format":"bubblescope-schedule/1","name":"x",
    "shape":{"ranks":2,"chunks":4,"microbatches":2},"placement":[0,1],
    "order":["0F0 0F1 0B0 0B1","1F0 1B0 1F1 1B1"]})");
  expect_says("check " + file + " --cap 1", 1, "the shape says 4 chunks per rank");
  expect_says("simulate " + file, 1, "the shape says 4 chunks per rank");
}

TEST_F(ScheduleFiles, ThatHangInEveryModeFail) {
  const std::string file =
      save("late.csv", "0F0,0RECV_B0,0B0,0SEND_F0\n1RECV_F0,1F0,1B0,1SEND_B0\n");
  expect_says("check " + file, 1, "late: legal order, but its messages HANG in every mode");
  expect_says("check " + file + " --format json", 1, "\"hangs_in_every_mode\":true");
  expect_says("check " + file + " --format json", 1, "\"legal\":false");
  expect_says("check " + file + " --format json", 1,
              "\"message\":\"its messages hang in every mode that posts them: with ");
  expect_says("check " + file + " --suggest", 1,
              "rank 0: post 0SEND_F0 directly after 0F0, not after 0B0");
}

TEST_F(ScheduleFiles, AreCheckedForTheReleaseOfAProfile) {
  const std::string old_file = save("old.csv",
                                    "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                    "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n");
  expect_says("check " + old_file, 0, "old: legal");
  expect_says("check " + old_file + " --profile pytorch-2.15", 1, "0SEND_F0 has no wait");
  expect_does_not_say("check " + old_file + " --profile pytorch", "changes nothing");
  const std::string file = path("new.csv");
  const CommandOutcome written =
      run_with_messages("convert " + old_file + " --to pytorch-csv-comms -o " + file);
  EXPECT_EQ(written.status, 0) << written.output;
  expect_says("check " + file + " --profile pytorch-2.15", 0, "new: legal");
  expect_says("check " + file + " --profile pytorch", 1,
              "0WAIT_SEND_F0 is not known to PyTorch before 2.15");
  EXPECT_EQ(run_command("convert " + old_file + " --to pytorch-csv-comms").output,
            run_command("convert 1f1b --pp 2 -m 2 --to pytorch-csv-comms").output);
  const std::string back = "convert " + file + " --profile pytorch --to pytorch-csv-comms";
  expect_says(back, 0, "new as pytorch-csv-comms loses the waits for sends");
  expect_does_not_say(back, "--profile changes nothing");
  expect_says("check " + file + " --lowering deferred", 0, "--lowering changes nothing");
}

TEST_F(ScheduleFiles, SayWhatTheyLeaveOut) {
  const std::string shape = " --pp 4 -m 8 --to ";
  expect_says("convert 1f1b --recompute selective" + shape + "text", 0, "what is recomputed");
  expect_says("convert chimera-doubling" + shape + "text", 0, "which forwards run as one");
  expect_says("convert bpipe" + shape + "text", 0, "the ranks that evicted activations go to");
  expect_says("convert 1f1b --fsdp" + shape + "deepspeed", 0, "UNSHARD, RESHARD and REDUCE_GRAD");
  expect_says("convert 1f1b --fsdp" + shape + "pytorch-csv", 0, "UNSHARD, RESHARD and REDUCE_GRAD");
  for (const char* format : {"text", "pytorch-csv", "pytorch-csv-comms"})
    expect_says("convert pipedream" + shape + format, 0, "the weights that ops read");
  for (const char* format : {"text", "native", "pytorch-csv", "pytorch-csv-comms", "deepspeed"})
    expect_does_not_say("convert 1f1b" + shape + format, " loses ");
}

// PyTorch 2.10 to 2.14 scale gradients at REDUCE_GRAD, which 2.6 to 2.9 do not know.
TEST_F(ScheduleFiles, ListsWithoutReductionsAreForOldReleasesOnly) {
  const std::string convert = " --pp 2 -m 2 --profile pytorch --to pytorch-csv-comms";
  expect_says("convert 1f1b" + convert, 0, "add --fsdp for 2.10 to 2.14");
  expect_does_not_say("convert 1f1b --fsdp" + convert, "2.10");
  expect_does_not_say("convert forward-only" + convert, "2.10");
  expect_does_not_say("convert 1f1b --pp 2 -m 2 --to pytorch-csv-comms", "2.10");
}

// The first op starts at 9 ms: the drawing began there, while the report counted from 0.
TEST_F(ScheduleFiles, DrawingsBeginWithTheFirstArrival) {
  const std::string arrivals = save("arrivals.txt", "9 8 7 6");
  const std::string drawn = run_command("simulate 1f1b --pp 2 -m 4 --arrivals " + arrivals).output;
  const std::size_t rank = drawn.find("rank 0  ");
  ASSERT_NE(rank, std::string::npos);
  EXPECT_EQ(drawn.compare(rank + 8, 2, "·"), 0) << drawn;
}

TEST_F(ScheduleFiles, OfOtherKindsAreNamed) {
  const std::string job = save("step.goal", "num_ranks 1\nrank 0 {\na: calc 5\n}\n");
  expect_says("simulate " + job, 2, "is a workload of a simulator");
  expect_says("check " + job + " --suggest", 2, "--suggest is for schedules");
  const std::string marked = save("marked.txt",
                                  "\xEF\xBB\xBF"
                                  "0F0 0B0\n");
  expect_says("check " + marked, 2, "begins with a byte order mark");
}

TEST_F(ScheduleFiles, WithAnotherShapeSayWhichToGive) {
  const std::string file = save("my.txt", "0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1\n");
  expect_says("compare " + file + ",1f1b --pp 2 -m 8", 2, "has -m 2, not 8; give -m 2");
}

TEST_F(ScheduleFiles, FlagsWithoutEffectAreNamed) {
  expect_says("check 1f1b --pp 2 -m 2 --optimizer local", 0, "--optimizer changes nothing");
  expect_says("simulate 1f1b --pp 2 -m 4 --offload 1 --copy 1", 0,
              "--copy changes nothing: --offload moves nothing here");
  expect_says("simulate 1f1b --pp 2 -m 4 --offload 1 --copy 1", 0, "--offload changes nothing");
  expect_says("convert 1f1b --pp 2 -m 1 --optimizer barrier --optimizer-step 3 --to goal", 2,
              "leave --optimizer out");
  expect_does_not_say("search --pp 2 -m 4 --r 5 --effort 1000", "add --recompute");
  expect_does_not_say("search --help", "--recompute");
}

TEST_F(ScheduleFiles, ConditionsAreExactAndMayBeOnNoise) {
  expect_says("simulate 1f1b --pp 4 -m 8 --fail-if 'makespan_ns>32999999'", 1,
              "(makespan_ns is 33000000)");
  const std::string noisy = "simulate 1f1b --pp 4 -m 8 --jitter 10% --seeds 20 --fail-if ";
  expect_says(noisy + "'makespan_ns>1'", 1, "--fail-if looks at the step without noise");
  expect_says(noisy + "'noise_p95_ns>33000000'", 1, "failed: noise_p95_ns>33000000");
}

TEST_F(ScheduleFiles, CostsNameEachLinkOnce) {
  const std::string costs = save("links.json", R"({"format":"bubblescope-costs/1","forward":1,
    "backward":2,"links":[{"from":0,"to":1,"latency":1},{"from":0,"to":1,"latency":2}]})");
  expect_says("simulate 1f1b --pp 2 -m 2 --costs " + costs, 2, "the link from 0 to 1 once more");
}

}  // namespace
}  // namespace bubblescope::tests
