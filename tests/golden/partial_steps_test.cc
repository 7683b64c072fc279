// Jobs of several replicas of which a step lacks one, or in which time is spent that nothing
// records.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/command.h"
#include "tests/support/temporary_folder.h"
#include "traces/files/file.h"

namespace bubblescope::tests {
namespace {

using Json = nlohmann::json;

constexpr int kMs = 1000;       ///< times of these traces are in microseconds
constexpr int kPeriod = 200;    ///< ms from step to step
constexpr int kSlowWorker = 1;  ///< rank 1 of replica 1 takes half as long again

struct Place {
  int replica = 0;
  int rank = 0;
  int step = 0;
};

Json event(const char* name, const Place& place, int microbatch, double start, double duration) {
  return {
      {"ph", "X"},
      {"name", name},
      {"pid", place.replica},
      {"tid", place.rank},
      {"ts", (kPeriod * place.step + start) * kMs},
      {"dur", duration * kMs},
      {"args", {{"step", place.step}, {"model_chunk", 0}, {"mb_id", microbatch}, {"seq_id", 0}}}};
}

/// 1F1B with two ranks and micro-batches, F = 10 ms, B = 20 ms.
void add_step(Json& events, int replica, int step) {
  const double factor = replica == kSlowWorker ? 1.5 : 1;
  const auto add = [&](const char* name, int rank, int microbatch, double start, double duration) {
    events.push_back(event(name, {replica, rank, step}, microbatch, start, duration));
    return start + duration;
  };
  const double sent = add("forward-compute", 0, 0, 0, 10);
  add("forward-compute", 0, 1, sent, 10);
  const double first = add("forward-compute", 1, 0, sent, 10 * factor);
  const double back = add("backward-compute", 1, 0, first, 20 * factor);
  const double second = add("forward-compute", 1, 1, back, 10 * factor);
  const double last = add("backward-compute", 1, 1, second, 20 * factor);
  add("backward-compute", 0, 0, back, 20);
  add("backward-compute", 0, 1, last, 20);
}

/// Five steps of two replicas; replica 1 has no step `without`.
Json job(int without) {
  Json events = Json::array();
  for (int replica = 0; replica < 2; ++replica)
    for (int rank = 0; rank < 2; ++rank)
      events.push_back({{"ph", "M"},
                        {"name", "thread_name"},
                        {"pid", replica},
                        {"tid", rank},
                        {"args", {{"name", "PP rank " + std::to_string(rank) + ", compute"}}}});
  for (int step = 0; step < 5; ++step)
    for (int replica = 0; replica < 2; ++replica)
      if (replica == 0 || step != without) add_step(events, replica, step);
  return {{"traceEvents", events}};
}

class PartialSteps : public TemporaryFolder {
 protected:
  std::string analyzed(const Json& trace) const {
    traces::write_file(path("job.json"), trace.dump());
    const CommandOutcome outcome = run_command("analyze " + path("job.json"));
    EXPECT_EQ(outcome.status, 0) << outcome.output;
    return outcome.output;
  }
};

// Without the step, the others say what they said: they lost all causes before, without a word.
TEST_F(PartialSteps, AreLeftOutAndCausesStay) {
  const std::string cause = "slow worker: rank 1 of replica 1 takes 1.50 x";
  const std::string saved = "the step would be 30 ms shorter (25 %)";
  const std::string whole = analyzed(job(-1));
  EXPECT_NE(whole.find(cause), whole.npos) << whole;
  EXPECT_NE(whole.find(saved), whole.npos) << whole;
  const std::string partial = analyzed(job(2));
  EXPECT_TRUE(partial.starts_with("left out: step 2, which lacks a replica\n")) << partial;
  EXPECT_NE(partial.find(cause), partial.npos) << partial;
  EXPECT_NE(partial.find(saved), partial.npos) << partial;
}

// The optimizer ends 30 ms after the pipeline, and takes 10 of them.
TEST_F(PartialSteps, TimeThatNothingExplainsIsNamed) {
  Json trace = job(-1);
  for (int step = 0; step < 5; ++step)
    for (int replica = 0; replica < 2; ++replica)
      for (int rank = 0; rank < 2; ++rank)
        trace["traceEvents"].push_back(event("optimizer", {replica, rank, step}, -1, 140, 10));
  const std::string report = analyzed(trace);
  EXPECT_NE(report.find("optimizer 10 ms, 20 ms in which nothing was recorded"), report.npos)
      << report;
}

/// Adds a reduction to all workers of a job, whose replicas wait for each other in it.
Json with_reductions(Json trace) {
  for (int step = 0; step < 5; ++step)
    for (int replica = 0; replica < 2; ++replica)
      for (int rank = 0; rank < 2; ++rank)
        trace["traceEvents"].push_back(
            event("grads-reduce-scatter", {replica, rank, step}, -1, 120, 10));
  return trace;
}

// Replica 1 is then the first one that is compared, whatever its number.
TEST_F(PartialSteps, MayBeAllOfAReplica) {
  Json trace = with_reductions(job(-1));
  Json& events = trace["traceEvents"];
  const auto is_gone = [](const Json& one) {
    return one["name"] == "forward-compute" && one["pid"] == 0 && one["tid"] == 1 &&
           one["args"]["mb_id"] == 1;
  };
  events.erase(std::remove_if(events.begin(), events.end(), is_gone), events.end());
  const std::string report = analyzed(trace);
  EXPECT_NE(report.find("5 steps left out, without the 8 ops"), report.npos) << report;
  EXPECT_NE(report.find("unequal stages: stage 1 (rank 1)"), report.npos) << report;
}

// The saved step is one more, which has a single replica.
TEST_F(PartialSteps, MayStandBesideASavedStep) {
  const std::string saved = path("saved.json");
  ASSERT_EQ(run_command("simulate 1f1b --pp 2 -m 2 --f 10 --save " + saved).status, 0);
  traces::write_file(path("job.json"), with_reductions(job(-1)).dump());
  const CommandOutcome outcome = run_with_messages("analyze " + saved + " " + path("job.json"));
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("left out: step 5, which lacks a replica"), std::string::npos)
      << outcome.output;
}

}  // namespace
}  // namespace bubblescope::tests
