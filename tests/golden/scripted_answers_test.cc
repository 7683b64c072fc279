// Answers that scripts and gates rely on: the limit that a plan lacks, the moves of a suggestion,
// and what two files differ in.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

class ScriptedAnswers : public TemporaryFolder {
 protected:
  static std::string said(const std::string& arguments, int status) {
    const CommandOutcome outcome = run_with_messages(arguments);
    EXPECT_EQ(outcome.status, status) << arguments << "\n" << outcome.output;
    return outcome.output;
  }

  static void expect_in(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }

  static void expect_not_in(const std::string& text, const std::string& part) {
    EXPECT_EQ(text.find(part), std::string::npos) << part << "\nis in\n" << text;
  }

  std::string save(const std::string& name, const std::string& arguments) const {
    const CommandOutcome outcome = run_command(arguments);
    EXPECT_EQ(outcome.status, 0) << arguments;
    std::ofstream(path(name)) << outcome.output;
    return path(name);
  }
};

/// The schedule's own shape with full recomputation holds 27.4 GiB, other ones more than the
/// devices have.
TEST_F(ScriptedAnswers, PlansLackWhatTheCapLeavesWhereItIsBelowTheDevices) {
  const std::string plan =
      "plan --model llama3-8b --gpus 8 --global-batch-size 16 --pp 2 --tp 2 --schedules ";
  for (const char* const schedules : {"1f1b", "1f1b,zb-h1,gpipe"}) {
    const std::string text = said(plan + schedules + " --cap 20GiB", 1);
    expect_in(text, "needs 37 % more memory than --cap allows; raise --cap");
    expect_in(text, "m 8 full: rank 0 holds 27.4 GiB at its peak, 7.44 GiB over --cap 20.0 GiB");
    expect_not_in(text, "--gpus,");
    expect_not_in(text, "of 78.6 GiB");
  }
  const std::string some = said(plan + "1f1b,gpipe --cap 30GiB", 0);
  expect_in(some, "holds 43.8 GiB at its peak, 13.8 GiB over --cap 30.0 GiB");
  expect_in(said(plan + "1f1b --cap 0.5", 1), "than --cap allows");
  expect_in(said(plan + "1f1b --cap 70GiB --micro-batch-size 8 --recompute none", 1), "of --gpus,");
}

/// The first rank has more memory than its cap, and the second less than the cap.
TEST_F(ScriptedAnswers, PlansNameTheRankThatIsOverItsCap) {
  const std::string plan =
      "plan --model llama3-8b --gpus 8 --global-batch-size 16 --pp 2 --tp 2 --micro-batch-size 1 "
      "--schedules 1f1b ";
  const std::string unequal = plan + "--gpu h200,a100-40 --recompute none --cap 45GiB";
  const std::string text = said(unequal, 1);
  expect_in(text, "rank 0 holds 62.2 GiB at its peak, 17.2 GiB over --cap 45.0 GiB");
  expect_in(text, "needs 38 % more memory than --cap allows");
  expect_in(said(plan + "--recompute full --cap 27.6GiB,24GiB", 1),
            "rank 1 holds 26.4 GiB at its peak, 2.43 GiB over --cap 24.0 GiB");
  said(unequal + " --resume " + path("journal"), 1);
  expect_in(said("plan --merge " + path("journal"), 1), "17.2 GiB over --cap 45.0 GiB");
  expect_in(said(plan + "--cap 0GiB", 1), "over 1000 % more memory than --cap allows");
}

TEST_F(ScriptedAnswers, PlansOfTooLargeModelsNameDevicesThatDivide) {
  const std::string plan = "plan --model llama3-405b --gpu h100 ";
  const std::string text = said(plan + "--gpus 72 --global-batch-size 72", 1);
  expect_in(text, "% more memory than its devices have; give about 80 or more of --gpus");
  expect_in(said(plan + "--gpus 8 --global-batch-size 8 --pp 8", 1), "give about 72 or more");
  const std::string fixed = plan + "--schedules 1f1b --tp 8 --pp 8 ";
  expect_in(said(fixed + "--gpus 64 --global-batch-size 64", 1), "give about 128 or more");
  said(fixed + "--gpus 128 --global-batch-size 128", 0);
}

TEST_F(ScriptedAnswers, PlansSearchOnlyWhereAskedOrNothingIsAsked) {
  const std::string plan = "plan --pp 4 -m 8 --format csv";
  expect_in(said(plan, 0), "v-half");
  expect_in(said(plan + " --schedules all,searched", 0), "v-half");
  expect_not_in(said(plan + " --schedules all", 0), "v-half");
  EXPECT_EQ(said(plan + " --schedules AUTO", 0), said(plan, 0));
  EXPECT_EQ(said(plan + " --schedules auto,1f1b", 0), said(plan, 0));
}

TEST_F(ScriptedAnswers, CommandsOfPlansLeaveOutSwitchesThatAreOff) {
  const std::string plan =
      "plan --model llama3-8b --gpus 8 --global-batch-size 16 --pp 2 --tp 2 --schedules 1f1b ";
  expect_not_in(said(plan + "--no-sequence-parallel=false", 0), "--no-sequence-parallel");
  expect_in(said(plan + "--no-sequence-parallel", 0), "--no-sequence-parallel");
}

TEST_F(ScriptedAnswers, PlansDrawOnlyPictures) {
  expect_in(said("plan --pp 4 -m 8 --schedules 1f1b --svg " + path("heat.html"), 2),
            "has the ending of another format; end it in .svg");
}

TEST_F(ScriptedAnswers, SuggestionsAreTimedByTheCostsThatAreGiven) {
  const std::string check =
      "check interleaved --pp 2 -m 2 --lowering deferred --p2p-mode rendezvous --suggest ";
  const std::string text = said(check + "--f 3 --i 30 --w 30 --p2p 5", 1);
  expect_in(text, "the step takes 194.5 ms");
  expect_in(text, "one move after the other");
  expect_not_in(text, "changes nothing");
  const Json verdict =
      Json::parse(run_command(check + "--f 3 --i 30 --w 30 --p2p 5 --format json").output);
  EXPECT_EQ(verdict.at("suggested_makespan_ns"), 194'500'000);
  std::string moves;
  for (const Json& move : verdict.at("suggested_moves"))
    moves += "rank " + std::to_string(move.at("rank").get<int>()) + ": post " +
             move.at("post").get<std::string>() + " before " +
             move.at("before").get<std::string>() + "\n";
  EXPECT_FALSE(moves.empty());
  EXPECT_TRUE(verdict.at("suggestion").get<std::string>().starts_with(moves)) << moves;
}

TEST_F(ScriptedAnswers, DifferencesCoverNoise) {
  const std::string step = "simulate 1f1b --pp 2 -m 4 --format json --jitter ";
  const std::string less = save("less.json", step + "5%");
  const std::string more = save("more.json", step + "8%");
  const std::string diff = "diff " + less + " " + more + " --fail-if ";
  expect_in(said(diff + "'noise_p95_ns_change>0.5%'", 1), "failed: noise_p95_ns_change");
  said(diff + "'noise_p95_ns_change>5%'", 0);
}

/// 48 shapes: a ratio is the same number in every format.
TEST_F(ScriptedAnswers, FormatsOfOneStepDoNotDiffer) {
  for (const char* const schedule : {"1f1b", "gpipe", "zb-h1"})
    for (const int ranks : {3, 4, 5, 7})
      for (const int microbatches : {7, 8, 10, 11}) {
        const std::string step = std::string("simulate ") + schedule + " --pp " +
                                 std::to_string(ranks) + " -m " + std::to_string(microbatches);
        const std::string json = save("step.json", step + " --format json");
        const std::string csv = save("step.csv", step + " --format csv");
        const std::string text =
            said("diff " + json + " " + csv + " --fail-if 'bubble_ratio_change>0'", 0);
        expect_in(text, "not compared, because only A has them: lower_bound_ns");
        said("diff " + csv + " " + json + " --fail-if 'bubble_ratio_change>0'", 0);
      }
}

TEST_F(ScriptedAnswers, SearchesAreGatedByTheirOwnNumbers) {
  const std::string search = "search --pp 3 -m 4 --cap 2 --fail-if ";
  expect_in(said(search + "'value_ns>1'", 1), "failed: value_ns>1");
  said(search + "'gap>1000%'", 0);
}

TEST_F(ScriptedAnswers, NetworksSayWhereNodesDoNotMatter) {
  const std::string step = "simulate 1f1b --pp 4 -m 8 --network bytes=64MiB,link=400";
  expect_in(said(step + ",per-node=8,nic=1", 0),
            "--network says of messages between nodes changes nothing: all ranks are on one node");
  expect_not_in(said(step + ",per-node=2,nic=1", 0), "changes nothing");
  expect_in(said(step + ",per-node=2", 2), "add between=GBIT/S or nic=GBIT/S");
}

TEST_F(ScriptedAnswers, APipeNeedsNoDotInItsName) {
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::thread writer([&] {
    for (int tries = 0; tries < 500; ++tries) {  // until the program reads, if it does
      const int end = open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
      if (end >= 0) {
        EXPECT_EQ(write(end, "0F0,0B0\n", 8), 8);
        close(end);
        return;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(std::filesystem::path(pipe).parent_path());
  const std::string text = said("check pipe", 0);
  std::filesystem::current_path(before);
  writer.join();
  expect_in(text, "legal");
}

}  // namespace
}  // namespace bubblescope::tests
