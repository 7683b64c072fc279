// Nsight Systems' recordings of jobs: replicas, ranks in step, chunks that nothing states, steps
// of different sizes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "tests/support/nsys_writer.h"
#include "tests/support/temporary_folder.h"
#include "traces/measured/assemble_steps.h"

namespace bubblescope::tests {
namespace {

constexpr std::int64_t kReplicaProcesses = 100;

/// The recording of another replica, whose processes have numbers of their own.
NsysEvents as_replica(NsysEvents events, std::int64_t replica) {
  const std::int64_t by = replica * kReplicaProcesses << 24;
  for (NsysEvents::Range& range : events.ranges) range.thread += by;
  for (NsysEvents::Call& call : events.calls) call.thread += by;
  for (NsysEvents::Kernel& kernel : events.kernels) kernel.process += by;
  return events;
}

NsysEvents join(NsysEvents left, const NsysEvents& right) {
  left.ranges.insert(left.ranges.end(), right.ranges.begin(), right.ranges.end());
  left.calls.insert(left.calls.end(), right.calls.begin(), right.calls.end());
  left.kernels.insert(left.kernels.end(), right.kernels.begin(), right.kernels.end());
  return left;
}

class NsysJobs : public TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    if (!write_database(path("probe.sqlite"), "CREATE TABLE a(b);"))
      GTEST_SKIP() << "there is no libsqlite3";
  }

  std::string write(const std::string& name, const NsysEvents& events) {
    write_nsys(path(name), events, NsysSchema::k2025);
    return path(name);
  }

  /// Assembles the files; refusals are the only fault of an empty result.
  std::vector<traces::MeasuredStep> read(const std::vector<std::string>& files) {
    read_ = {};
    said_.clear();
    try {
      traces::ObservedTrace trace;
      for (const std::string& file : files) traces::append(trace, traces::read_trace(file));
      read_ = traces::assemble_steps(std::move(trace));
      for (const std::string& fault : read_.remarks.faults) said_ += fault + "\n";
      for (const std::string& doubt : read_.remarks.doubts) said_ += doubt + "\n";
      return read_.steps;
    } catch (const Error& error) {
      said_ = error.what();
      return {};
    }
  }

  traces::AssembledSteps read_;
  std::string said_;
};

/// 1F1B whose forwards take 1.1 ms on one replica and, on the other, 1.1 ms and a tenth more on
/// the stages after the first, so that no op of either has the time of one of the other.
RecordedStep record(Nanos forward, std::int32_t microbatches = 8) {
  UniformCost cost = uneven_cost(10'000);
  cost.forward = forward;
  return record_step("1f1b", {.ranks = 4, .microbatches = microbatches}, cost);
}

TEST_F(NsysJobs, ReplicasAreSortedByWhatComesBeforeWhat) {
  const NsysEvents slow = record_nsys(record(1'500'000), {NsysNames::kFunctions});
  const NsysEvents fast = record_nsys(record(1'100'000), {NsysNames::kFunctions});
  // Files are named so that their order mixes the replicas.
  std::vector<std::string> files;
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const bool swapped = rank % 2 == 1;
    files.push_back(write(fmt::format("{}a.sqlite", rank), of_rank(swapped ? fast : slow, rank)));
    files.push_back(write(fmt::format("{}b.sqlite", rank), of_rank(swapped ? slow : fast, rank)));
  }
  const std::vector<traces::MeasuredStep> steps = read(files);
  EXPECT_EQ(said_, "");
  ASSERT_EQ(steps.size(), 6u);
  const Nanos of_slow = record(1'500'000).report.makespan;
  const Nanos of_fast = record(1'100'000).report.makespan;
  for (const traces::MeasuredStep& step : steps)
    EXPECT_NEAR(static_cast<double>(compute_makespan(step.timeline)),
                static_cast<double>(step.replica == steps.front().replica ? of_slow : of_fast),
                20'000)
        << step.label;
}

// A step's range also holds what runs after the ops: an all-reduce and the optimizer, launched
// while the ops still run. Kernels inside the step's ops are not activities around them.
TEST_F(NsysJobs, ActivitiesBehindTheOpsAreThoseOfTheirStep) {
  NsysEvents events = record_nsys(record(1'100'000), {NsysNames::kOps, 1});
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    const NsysEvents own = of_rank(events, rank);
    const std::int64_t thread = own.ranges.front().thread;
    Nanos launched = 0;
    Nanos end = 0;
    for (const NsysEvents::Range& range : own.ranges) launched = std::max(launched, range.end);
    for (const NsysEvents::Kernel& kernel : own.kernels) end = std::max(end, kernel.end);
    events.ranges.push_back({thread, 0, launched + 200, "iteration 7"});
    const std::int64_t correlation = 900'000 + 10 * rank;
    events.calls.push_back({thread, launched + 100, correlation});
    events.calls.push_back({thread, launched + 110, correlation + 1});
    const std::int64_t process = nsys_process(rank);
    events.kernels.push_back({process, end + 1'000, end + 6'000, correlation,
                              "ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
    events.kernels.push_back(
        {process, end + 6'000, end + 9'000, correlation + 1, "multi_tensor_apply_kernel"});
  }
  ASSERT_EQ(read({write("job.sqlite", events)}).size(), 1u) << said_;
  EXPECT_EQ(said_, "");
  std::map<std::string, std::vector<Nanos>> times;
  for (const traces::ObservedActivity& activity : read_.activities)
    if (activity.name != "step") times[activity.name].push_back(activity.end - activity.start);
  EXPECT_EQ(times.size(), 2u);
  EXPECT_EQ(times["all-reduce"], std::vector<Nanos>(4, 5'000));
  EXPECT_EQ(times["other kernels"], std::vector<Nanos>(4, 3'000));
}

// A replica in step with another one has the same times: whichever rank is shown, the report is the
// same.
TEST_F(NsysJobs, RanksInStepAreShownOnce) {
  const NsysEvents events = record_nsys(record(1'100'000), {NsysNames::kMegatron});
  const std::vector<traces::MeasuredStep> steps =
      read({write("job.sqlite", join(events, as_replica(events, 1)))});
  EXPECT_EQ(said_, "");
  EXPECT_EQ(steps.size(), 3u);
  EXPECT_TRUE(std::any_of(
      read_.remarks.notes.begin(), read_.remarks.notes.end(),
      [](const std::string& note) { return note.find("tensor-parallel") != note.npos; }));
}

// All forwards run first: eight of one stage, or four of each of two. In the other order, ranks run
// 8, 8, 7 and 5 forwards before their first backward.
TEST_F(NsysJobs, ChunksThatFunctionsLeaveOpenAreSaid) {
  for (const auto& [schedule, said] : {std::pair("bfs", "or 4 in 2 stages per rank"),
                                       std::pair("interleaved", "8, 8, 7, 5 forwards")}) {
    const RecordedStep step =
        record_step(schedule, {.ranks = 4, .chunks = 2, .microbatches = 4}, uneven_cost(0));
    const std::string file = write("job.sqlite", record_nsys(step, {NsysNames::kFunctions}));
    read({file});
    ASSERT_FALSE(read_.remarks.faults.empty()) << schedule;
    EXPECT_NE(read_.remarks.faults.front().find(said), std::string::npos) << said_;
  }
}

// Messages of 10 us: GPipe's fifth forward on rank 0 begins before the last rank ends its first.
TEST_F(NsysJobs, GpipeIsToldFromTwoChunksByItsTimes) {
  const RecordedStep step =
      record_step("gpipe", {.ranks = 4, .microbatches = 8}, uneven_cost(10'000));
  const std::string file = write("job.sqlite", record_nsys(step, {NsysNames::kFunctions}));
  EXPECT_EQ(read({file}).size(), 3u);
  EXPECT_EQ(said_, "");
}

// The reduction begins amid the last backward and ends 2 ms after it.
TEST_F(NsysJobs, CollectivesBesideAnOpDoNotLengthenIt) {
  const RecordedStep step = record(1'100'000);
  const NsysJob job{.names = NsysNames::kOps, .reduction = 3'000'000};
  const std::vector<traces::MeasuredStep> steps =
      read({write("job.sqlite", record_nsys(step, job))});
  ASSERT_EQ(steps.size(), 3u) << said_;
  EXPECT_EQ(compute_makespan(steps.front().timeline), step.report.makespan);
}

// Steps of 8, 8 and 12 micro-batches: the last is not an incomplete one, and lacks nothing.
TEST_F(NsysJobs, StepsOfOtherSizesAreNotCalledIncomplete) {
  NsysEvents events = record_nsys(record(1'100'000), {NsysNames::kOps, 2});
  NsysEvents more = record_nsys(record(1'100'000, 12), {NsysNames::kOps, 1});
  constexpr Nanos kLater = 500'000'000;
  for (NsysEvents::Range& range : more.ranges) {
    range.start += kLater;
    range.end += kLater;
  }
  constexpr std::int64_t kOtherCalls = 100'000;
  for (NsysEvents::Call& call : more.calls) {
    call.start += kLater;
    call.correlation += kOtherCalls;
  }
  for (NsysEvents::Kernel& kernel : more.kernels) {
    kernel.start += kLater;
    kernel.end += kLater;
    kernel.correlation += kOtherCalls;
  }
  const std::vector<traces::MeasuredStep> steps = read({write("job.sqlite", join(events, more))});
  EXPECT_EQ(said_, "");
  EXPECT_EQ(steps.size(), 2u);
  ASSERT_FALSE(read_.remarks.notes.empty());
  EXPECT_NE(read_.remarks.notes.front().find("another number of micro-batches"), std::string::npos)
      << read_.remarks.notes.front();
}

// Ranges around all steps give their numbers and, with the time to the next one, their length.
TEST_F(NsysJobs, RangesOfIterationsAreSteps) {
  const RecordedStep step = record(1'100'000);
  NsysEvents events = record_nsys(step, {NsysNames::kOps});
  const Nanos period = step.report.makespan + 600'000;
  for (std::int32_t rank = 0; rank < 4; ++rank)
    for (std::int64_t at = 0; at < 3; ++at) {
      const Nanos begin = 4'900'000 + at * period;
      events.ranges.push_back({nsys_process(rank) + 17, begin, begin + period - 1'000,
                               fmt::format("iteration {}", 100 + at)});
    }
  const std::vector<traces::MeasuredStep> steps = read({write("job.sqlite", events)});
  EXPECT_EQ(said_, "");
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps.front().number, 100);
  ASSERT_EQ(read_.whole_steps.size(), 3u);
  EXPECT_EQ(read_.whole_steps.front().whole, period - 1'000);
}

}  // namespace
}  // namespace bubblescope::tests
