// Tests reports on data-parallel replicas that begin late, and on those that lack a rank.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/measured_job.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr int kRanks = 4;
constexpr int kMicrobatches = 4;
constexpr int kForward = 100'000;  // all times in microseconds
constexpr int kBackward = 200'000;
constexpr int kReduction = 60'000;
constexpr int kBetween = 20'000;
constexpr int kOps = (kRanks + kMicrobatches - 1) * (kForward + kBackward);

/// A job of three replicas as StragglerAnalysis writes it, whose gradients are reduced by a
/// collective of this name. The second replica begins its ops `late` after the others, except in
/// the third of six steps.
class LateJob {
 public:
  LateJob(std::string collective, int late) : collective_(std::move(collective)) {
    int time = 0;
    for (int step = 0; step < 6; ++step) {
      const int wait = step == 2 ? 0 : late;
      const int end = time + wait + kOps + kReduction;
      for (int replica = 0; replica < 3; ++replica)
        add_step(replica, step, time + (replica == 1 ? wait : 0), end);
      time = end + kBetween;
    }
  }

  std::string text() const { return trace_.text(); }

 private:
  void add_step(int replica, int step, int begin, int end) {
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
        const Json args = {{"step", step}, {"mb_id", microbatch}};
        const int forward = begin + kForward * (rank + microbatch);
        trace_.add("forward-compute", replica, 2 * rank, forward, forward + kForward, args);
        const int before = kForward * (kRanks + kMicrobatches - 1);
        const int backward = begin + before + kBackward * (kRanks - 1 - rank + microbatch);
        trace_.add("backward-compute", replica, 2 * rank, backward, backward + kBackward, args);
      }
      const int last = begin + kOps - rank * kBackward;
      trace_.add(collective_, replica, 2 * rank + 1, last, end, {{"step", step}, {"mb_id", -1}});
    }
  }

  std::string collective_;
  JobTrace trace_{3, kRanks};
};

class LateReplicaCommand : public TemporaryFolder {
 protected:
  Json report_on(const LateJob& job) {
    traces::write_file(path("job.json"), job.text());
    return read_report("analyze " + path("job.json"));
  }
};

/// The cause of this kind; null if the report has none.
Json find_cause(const Json& report, const std::string& kind) {
  for (const Json& cause : report["causes"])
    if (cause["cause"] == kind) return cause;
  return {};
}

// Both where whole steps are replayed, as they are with Megatron's names, and where they are not.
TEST_F(LateReplicaCommand, IsNamedWithItsTime) {
  for (const char* collective : {"my-all-reduce", "grads-reduce-scatter", "all-grads-sync"}) {
    SCOPED_TRACE(collective);
    const Json report = report_on({collective, 150'000});
    const Json late = find_cause(report, "late_replica");
    ASSERT_FALSE(late.is_null()) << report["trust"];
    EXPECT_EQ(late["where"], "replica 1");
    // Where the first step starts is not known, and in the third none is late.
    EXPECT_EQ(late["saves_ns"], 150'000'000 * 4 / 5);
    EXPECT_EQ(report["causes"][0]["cause"], "late_replica");
  }
}

TEST_F(LateReplicaCommand, ThereIsNoneWhereAllBeginAlike) {
  EXPECT_TRUE(find_cause(report_on({"my-all-reduce", 0}), "late_replica").is_null());
}

// The step of the replica for which the others wait holds no waiting.
TEST_F(LateReplicaCommand, TheStepIsDividedAsTheSlowestReplicaSpendsIt) {
  const Json report = report_on({"my-all-reduce", 150'000});
  EXPECT_EQ(report["outside_pipeline_ns"]["my-all-reduce"], kReduction * 1000);
}

// The page says of every cause what the text says, in the same order.
TEST_F(LateReplicaCommand, IsNamedOnThePage) {
  traces::write_file(path("job.json"), LateJob("my-<b>-all-reduce", 150'000).text());
  const std::string text =
      run_command("analyze " + path("job.json") + " --html " + path("page.html")).output;
  const std::string page = traces::read_file(path("page.html"));
  EXPECT_EQ(page.find("<b>"), page.npos);
  const std::string begin = "id=\"data\">";
  const std::size_t data = page.find(begin) + begin.size();
  const Json found =
      Json::parse(page.substr(data, page.find("</script>", data) - data))["longSteps"]["causes"];
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["saves"], 120'000'000);
  EXPECT_NE(found[1]["what"].get<std::string>().find("my-<b>-all-reduce"), std::string::npos);
  std::size_t at = 0;
  for (const Json& cause : found)
    for (const char* words : {"what", "wouldSave"}) {
      at = text.find(cause[words], at);
      EXPECT_NE(at, text.npos) << cause[words] << "\n" << text;
    }
}

// Replica 0 begins 450 ms late, and a rank of replica 1 takes 1.2 times as long, 360 ms in 6
// micro-batches and 720 ms in 12: the late one decides the measured step, the slow one the longer.
TEST_F(LateReplicaCommand, BeginsAsLateWithOtherSchedules) {
  const auto duration = [](const JobOp& op) {
    const int usual = op.is_backward ? kBackward : kForward;
    return op.replica == 1 && op.rank == 2 ? usual * 6 / 5 : usual;
  };
  JobPlan plan{.duration = duration,
               .late = [](const JobOp& op) { return op.replica == 0 ? 450'000 : 0; }};
  const MeasuredJob job = run_job(plan);
  traces::write_file(path("job.json"), job.text);
  const Json report = read_report("analyze " + path("job.json") + " --try gpipe -m 3,6,12");
  EXPECT_EQ(report["step_ns"], job.mean_step * 1000);
  EXPECT_EQ(report["tries"][0]["measured_ns"], report["step_ns"]);
  for (std::size_t at = 0; at < 3; ++at) {
    plan.microbatches = 3 << at;
    const double truth = run_job(plan).mean_step * 1000;
    EXPECT_NEAR(report["tries"][at + 1]["step_ns"].get<double>(), truth, 0.001 * truth) << at;
  }
}

TEST_F(LateReplicaCommand, FailsAGate) {
  traces::write_file(path("job.json"), LateJob("my-all-reduce", 150'000).text());
  const std::string analyze = "analyze " + path("job.json") + " --fail-if ";
  EXPECT_EQ(run_command(analyze + "'cause_late_replica_s>0.1'").status, 1);
  EXPECT_EQ(run_command(analyze + "'cause_late_replica_s>0.2'").status, 0);
}

}  // namespace
}  // namespace bubblescope::tests
