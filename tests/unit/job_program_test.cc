// Whole steps of two replicas with two stages and one micro-batch.
#include "sim/analysis/job_program.h"

#include <gtest/gtest.h>

#include <variant>

#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "tests/support/as_written.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// 0F0 1F0 1B0 0B0 in sequence, from `begin` on.
struct Recorded {
  Program program;
  Timeline timeline;
};

Recorded record(Nanos begin, Nanos each) {
  Recorded made{std::get<Program>(lower(traces::parse_schedule_text("0F0 0B0 | 1F0 1B0"))), {}};
  made.timeline.start.assign(made.program.size(), 0);
  made.timeline.end.assign(made.program.size(), 0);
  for (const char* const op : {"0F0", "1F0", "1B0", "0B0"}) {
    for (InstructionId id = 0; id < made.program.size(); ++id)
      if (to_string(made.program.instructions[id].op) == op) {
        made.timeline.start[id] = begin;
        made.timeline.end[id] = begin + each;
      }
    begin += each;
  }
  return made;
}

constexpr Nanos kMs = 1'000'000;

OuterActivity activity(const char* name, std::int32_t replica, std::int32_t rank,
                       ActivityGroup group, Nanos start, Nanos end) {
  OuterActivity made{name, replica, rank, group, true};
  made.start = start;
  made.end = end;
  return made;
}

Nanos makespan(const JobProgram& job) {
  return compute_makespan(simulate(job.program, job.durations));
}

// Replica 0 computes 4 x 10 ms, replica 1 4 x 20 ms. The parameters take 5 ms before, and a
// reduction of rank 0 takes 7 ms: it begins at 5 + 80 on both replicas, so that the step takes 92.
TEST(JobProgram, CollectivesBeginWithTheirLastReplica) {
  const Recorded fast = record(5 * kMs, 10 * kMs);
  const Recorded slow = record(5 * kMs, 20 * kMs);
  const ReplicatedStep step{{fast.program, fast.timeline}, {slow.program, slow.timeline}};
  std::vector<OuterActivity> activities;
  for (std::int32_t replica = 0; replica < 2; ++replica) {
    activities.push_back(activity("gather", replica, 0, ActivityGroup::kReplicas, 0, 5 * kMs));
    activities.push_back(
        activity("reduce", replica, 0, ActivityGroup::kReplicas, 85 * kMs, 92 * kMs));
  }
  const std::vector<std::vector<OuterActivity>> steps{activities};
  const auto job = make_job_program(step, activities, collect_names(steps));
  ASSERT_TRUE(job);
  EXPECT_EQ(makespan(*job), 92 * kMs);
}

// The reduction of replica 0 is recorded from 45 ms on, when its ops have ended. It waits for
// replica 1, whose ops end at 85, and both reduce until 92: the replay takes 92 ms, as measured.
TEST(JobProgram, CollectivesTakeNoTimeBeforeTheirLastReplicaComes) {
  const Recorded fast = record(5 * kMs, 10 * kMs);
  const Recorded slow = record(5 * kMs, 20 * kMs);
  const ReplicatedStep step{{fast.program, fast.timeline}, {slow.program, slow.timeline}};
  std::vector<OuterActivity> activities;
  for (std::int32_t replica = 0; replica < 2; ++replica)
    activities.push_back(activity("gather", replica, 0, ActivityGroup::kReplicas, 0, 5 * kMs));
  activities.push_back(activity("reduce", 0, 0, ActivityGroup::kReplicas, 45 * kMs, 92 * kMs));
  activities.push_back(activity("reduce", 1, 0, ActivityGroup::kReplicas, 85 * kMs, 92 * kMs));
  const std::vector<std::vector<OuterActivity>> steps{activities};
  const auto job = make_job_program(step, activities, collect_names(steps));
  ASSERT_TRUE(job);
  EXPECT_EQ(makespan(*job), 92 * kMs);
}

// Rank 1's parameters end at 12 ms, when its forward could begin at 10: the step of 40 ms takes 42.
TEST(JobProgram, OpsWaitForTheActivitiesBeforeThem) {
  const Recorded one = record(0, 10 * kMs);
  Recorded late = one;
  for (InstructionId id = 0; id < late.program.size(); ++id)
    if (to_string(late.program.instructions[id].op) != "0F0") {
      late.timeline.start[id] += 2 * kMs;
      late.timeline.end[id] += 2 * kMs;
    }
  const ReplicatedStep step{{late.program, late.timeline}};
  const std::vector<OuterActivity> activities{
      activity("gather", 0, 1, ActivityGroup::kAlone, 0, 12 * kMs)};
  const std::vector<std::vector<OuterActivity>> steps{activities};
  const auto job = make_job_program(step, activities, collect_names(steps));
  ASSERT_TRUE(job);
  EXPECT_EQ(makespan(*job), 42 * kMs);
}

// Rank 0 comes to a before b, rank 1 to b before a: neither could begin.
TEST(JobProgram, OppositeOrdersAreNone) {
  const Recorded one = record(0, 10 * kMs);
  const ReplicatedStep step{{one.program, one.timeline}};
  const std::vector<OuterActivity> activities{
      activity("a", 0, 0, ActivityGroup::kPipeline, 41 * kMs, 42 * kMs),
      activity("b", 0, 0, ActivityGroup::kPipeline, 43 * kMs, 44 * kMs),
      activity("b", 0, 1, ActivityGroup::kPipeline, 41 * kMs, 42 * kMs),
      activity("a", 0, 1, ActivityGroup::kPipeline, 43 * kMs, 44 * kMs)};
  const std::vector<std::vector<OuterActivity>> steps{activities};
  EXPECT_FALSE(make_job_program(step, activities, collect_names(steps)));
}

}  // namespace
}  // namespace bubblescope::tests
