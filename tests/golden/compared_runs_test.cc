// Tests what diff says of two runs of a job, given the files that analyze saved of them.
#include <gtest/gtest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/measured_job.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr int kForward = 100'000;  // microseconds

/// Ops that differ by up to 1 % without a pattern; those of one worker take longer.
int usual_time(const JobOp& op) {
  const int time = op.is_backward ? 2 * kForward : kForward;
  const int place = ((op.step * 7 + op.replica) * 5 + op.rank) * 11 + op.microbatch;
  return time + time / 2000 * (place * 7919 % 21 - 10);
}

int with_slow_worker(const JobOp& op) {
  const int time = usual_time(op);
  return op.replica == 1 && op.rank == 2 ? time * 6 / 5 : time;
}

class ComparedRuns : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    write_run("a", run_job({.duration = usual_time}).text);
    write_run("b", run_job({.duration = with_slow_worker}).text);
  }

  /// The trace of a run, the file that analyze saves of it, and its report.
  void write_run(const std::string& name, const std::string& trace) const {
    traces::write_file(path(name + "-trace.json"), trace);
    const CommandOutcome outcome = run_command("analyze " + path(name + "-trace.json") +
                                               " --format json --save " + path(name + ".json"));
    traces::write_file(path(name + "-report.json"), outcome.output);
  }

  std::string diff_of(const std::string& a, const std::string& b) const {
    return "diff " + path(a) + " " + path(b) + " ";
  }
};

// The median step is one of the replica without the slow worker, so its numbers stay as they were:
// the slow worker adds a fifth of its 6 x (100 + 200) ms to the step, 360 ms.
TEST_F(ComparedRuns, ShowTheWorkerThatBecameSlow) {
  for (const char* suffix : {".json", "-report.json"}) {
    SCOPED_TRACE(suffix);
    const std::string diff = diff_of(std::string("a") + suffix, std::string("b") + suffix);
    const Json found = read_report(diff);
    const Json& cause = found["causes"][0];
    EXPECT_EQ(cause["cause"], "worker");
    EXPECT_EQ(cause["where"], "rank 2 of replica 1");
    EXPECT_TRUE(cause["saves_ns"]["a"].is_null());
    EXPECT_NEAR(cause["saves_ns"]["b"].get<double>(), 360e6, 0.03 * 360e6);
    const Json& worker = found["workers"][0];
    EXPECT_EQ(worker["replica"], 1);
    EXPECT_EQ(worker["rank"], 2);
    EXPECT_NEAR(worker["S"]["a"].get<double>(), 1, 0.01);
    EXPECT_GT(worker["S"]["b"], 1.08);
    const std::string text = run_command(diff).output;
    EXPECT_NE(text.find("worker: rank 2 of replica 1"), text.npos) << text;
    EXPECT_EQ(run_command(diff + "--fail-if 'step_ns_change>0.05'").status, 1);
    EXPECT_EQ(run_command(diff + "--fail-if 'cause_worker_s>0.3'").status, 1);
    EXPECT_EQ(run_command(diff + "--fail-if 'cause_worker_s>0.4'").status, 0);
  }
}

// The page has the rows of the text.
TEST_F(ComparedRuns, ShowWhatChangedOnAPage) {
  const std::string text =
      run_command(diff_of("a.json", "b.json") + "--html " + path("page.html")).output;
  const std::string page = traces::read_file(path("page.html"));
  const std::string begin = R"("changes":[{"title":"causes, by what the mean step would save",)"
                            R"("rows":[["worker: rank 2 of replica 1","-",")";
  const std::size_t at = page.find(begin);
  ASSERT_NE(at, page.npos);
  const std::size_t saves = at + begin.size();
  EXPECT_NE(text.find(page.substr(saves, page.find('"', saves) - saves)), text.npos) << text;
}

TEST_F(ComparedRuns, ShowTheWorkerThatIsSlowNoMore) {
  const Json found = read_report(diff_of("b.json", "a.json"));
  EXPECT_EQ(found["causes"][0]["where"], "rank 2 of replica 1");
  EXPECT_TRUE(found["causes"][0]["saves_ns"]["b"].is_null());
  EXPECT_LT(found["metrics"]["step_ns_change"], -0.05);
  EXPECT_EQ(found["metrics"]["cause_worker_s"], 0);
}

TEST_F(ComparedRuns, AreAlikeWhereNothingChanged) {
  const std::string text = run_command(diff_of("b.json", "b.json")).output;
  EXPECT_NE(text.find("workers: none makes the step 2 % longer or shorter"), text.npos) << text;
  EXPECT_EQ(text.find("inf"), text.npos) << text;
}

// Files that earlier versions saved hold a step alone.
TEST_F(ComparedRuns, MayBeSavedByEarlierVersions) {
  Json old = Json::parse(traces::read_file(path("a.json")));
  old.erase("job");
  traces::write_file(path("old.json"), old.dump());
  const CommandOutcome outcome = run_with_messages(diff_of("old.json", "b.json"));
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.output.find("A has no causes or workers"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("causes, by what"), std::string::npos) << outcome.output;
  const CommandOutcome gate =
      run_with_messages(diff_of("old.json", "b.json") + "--fail-if 'step_ns_change>0.1'");
  EXPECT_EQ(gate.status, 2) << gate.output;
}

TEST_F(ComparedRuns, AreReadAgainAsTheirMedianStep) {
  const std::string text = run_command("analyze " + path("b.json")).output;
  EXPECT_NE(text.find("is the median of 16 iterations"), text.npos) << text;
}

// Causes that are not known are not 0.
TEST_F(ComparedRuns, FailGatesOnNumbersThatAreNotKnown) {
  Json unknown = Json::parse(traces::read_file(path("b.json")));
  unknown["job"]["causes"] = nullptr;
  traces::write_file(path("unknown.json"), unknown.dump());
  CommandOutcome gate =
      run_with_messages(diff_of("a.json", "unknown.json") + "--fail-if 'cause_worker_s>0.4'");
  EXPECT_EQ(gate.status, 1);
  EXPECT_NE(gate.output.find("cause_worker_s is not known of both"), std::string::npos)
      << gate.output;
  unknown["job"]["trust"] = {
      {"replay_error", 0.2}, {"verdict", "none"}, {"why", {"the ops do not explain the step"}}};
  traces::write_file(path("unknown.json"), unknown.dump());
  gate = run_with_messages(diff_of("a.json", "unknown.json") + "--fail-if 'step_ns_change>0.4'");
  EXPECT_EQ(gate.status, 1);
  EXPECT_NE(gate.output.find("B is not trusted: the ops do not explain the step"),
            std::string::npos)
      << gate.output;
}

TEST_F(ComparedRuns, AreRefusedWithThePlaceOfAFault) {
  const std::string saved = traces::read_file(path("b.json"));
  const auto expect_refusal = [&](const char* from, const char* to, const char* message) {
    std::string damaged = saved;
    const std::size_t at = damaged.find(from);
    ASSERT_NE(at, damaged.npos) << from;
    damaged.replace(at, std::string(from).size(), to);
    traces::write_file(path("damaged.json"), damaged);
    const CommandOutcome outcome = run_with_messages(diff_of("a.json", "damaged.json"));
    EXPECT_EQ(outcome.status, 2);
    EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  };
  expect_refusal("\"saves_ns\":", "\"saves_ns\":-", "/job/causes/0/saves_ns");
  expect_refusal("\"S\":", "\"S\":-", "/job/slowdown/S: must be a ratio");
  expect_refusal("\"iterations\":16", "\"iterations\":0", "/job/iterations");
}

}  // namespace
}  // namespace bubblescope::tests
