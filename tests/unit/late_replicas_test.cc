// Replicas that begin late, of which only the waiting of the others remains in a trace.
#include "sim/analysis/late_replicas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "sim/model/schedule_def.h"
#include "traces/measured/replica_starts.h"

namespace bubblescope::tests {
namespace {

constexpr Nanos kMilli = 1'000'000;
constexpr Nanos kOps = 100 * kMilli;       ///< of every replica in every step
constexpr Nanos kReduction = 20 * kMilli;  ///< the collective itself
constexpr Nanos kUsualDelay = 5 * kMilli;  ///< from the end of a step to the next one's ops

ValidSchedule order_of_one() {
  ScheduleRequest request;
  request.shape.ranks = 1;
  request.shape.microbatches = 1;
  return build_schedule(find_schedule("1f1b"), request);
}

/// A job whose replicas reduce gradients at the end of each step, each by a clock of its own.
class Job {
 public:
  explicit Job(std::int32_t replicas) : replicas_(replicas) {}

  /// Adds a step in which each replica begins so much later than usual.
  void add_step(const std::vector<Nanos>& late, bool has_marks = false) {
    const Nanos last = *std::max_element(late.begin(), late.end());
    const Nanos end = time_ + kUsualDelay + last + kOps + kReduction;
    for (std::int32_t replica = 0; replica < replicas_; ++replica) {
      const Nanos clock = replica * 77'777 * kMilli;
      const Nanos begin = clock + time_ + kUsualDelay + late[static_cast<std::size_t>(replica)];
      traces::MeasuredStep step{"", order_of_one()};
      step.timeline.start = {0};
      step.timeline.end = {kOps};
      step.replica = replica;
      step.number = number_;
      step.begin = begin;
      steps_.push_back(std::move(step));
      activities_.push_back(
          {"allreduce", replica, replica, number_, false, begin + kOps, clock + end});
      if (has_marks)
        activities_.push_back(
            {"ProfilerStep", replica, replica, number_, true, clock + time_, clock + end});
    }
    time_ = end;
    ++number_;
  }

  std::optional<Cause> find() const {
    std::vector<std::int64_t> numbers;
    for (std::int64_t number = 0; number < number_; ++number) numbers.push_back(number);
    return find_late_replicas(traces::find_replica_starts(activities_, steps_)).find_cause(numbers);
  }

 private:
  std::int32_t replicas_;
  Nanos time_ = 0;
  std::int64_t number_ = 0;
  std::vector<traces::MeasuredStep> steps_;
  std::vector<traces::ObservedActivity> activities_;
};

const ReplicasThatBeginLate& facts_of(const std::optional<Cause>& cause) {
  return std::get<ReplicasThatBeginLate>(cause->facts);
}

TEST(LateReplicas, OneThatTheOthersWaitForCostsItsDelay) {
  Job job(3);
  for (int step = 0; step < 5; ++step) job.add_step({0, 40 * kMilli, kMilli});
  const std::optional<Cause> cause = job.find();
  ASSERT_TRUE(cause);
  EXPECT_EQ(facts_of(cause).replicas, (std::vector<std::int32_t>{1}));
  EXPECT_EQ(facts_of(cause).steps, 4);  // where the first step starts is not known
  EXPECT_EQ(cause->all_steps, 4);
  EXPECT_EQ(cause->saves, 40 * kMilli);
}

TEST(LateReplicas, MarksTellWhereTheFirstStepStarts) {
  Job job(2);
  job.add_step({0, 30 * kMilli}, true);
  job.add_step({0, 0}, true);
  const std::optional<Cause> cause = job.find();
  ASSERT_TRUE(cause);
  EXPECT_EQ(facts_of(cause).steps, 1);
  EXPECT_EQ(cause->all_steps, 2);
  EXPECT_EQ(cause->saves, 15 * kMilli);
}

TEST(LateReplicas, SeveralAreRemovedTogether) {
  Job job(5);
  for (int step = 0; step < 3; ++step) job.add_step({0, 30 * kMilli, 0, 30 * kMilli, 0});
  const std::optional<Cause> cause = job.find();
  ASSERT_TRUE(cause);
  EXPECT_EQ(facts_of(cause).replicas, (std::vector<std::int32_t>{1, 3}));
  EXPECT_EQ(cause->saves, 30 * kMilli);
}

TEST(LateReplicas, ThereAreNoneWhereAllBeginAlike) {
  Job job(3);
  for (int step = 0; step < 5; ++step) job.add_step({40 * kMilli, 40 * kMilli, 40 * kMilli});
  EXPECT_FALSE(job.find());
  Job alone(1);
  for (int step = 0; step < 5; ++step) alone.add_step({40 * kMilli});
  EXPECT_FALSE(alone.find());
}

}  // namespace
}  // namespace bubblescope::tests
