// Checks the critical path and the slack of random programs against their definitions: the path is
// an unbroken chain from the first start to the last end, and the slack is how much longer an
// instruction could take.
#include "sim/analysis/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "sim/analysis/blocker.h"
#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"

namespace bubblescope::tests {
namespace {

struct Case {
  Program program;
  std::vector<Nanos> durations;
  Timeline timeline;
  Nanos makespan = 0;
};

Case random_case(std::mt19937& random) {
  Case made{random_program(random), {}, {}, 0};
  made.durations = random_durations(made.program, random);
  made.timeline = simulate(made.program, made.durations);
  made.makespan = compute_makespan(made.timeline);
  return made;
}

std::vector<InstructionId> path_of(const Program& program, const Timeline& timeline) {
  return find_critical_path(program, timeline, Blockers(program, timeline));
}

std::vector<Nanos> slack_of(const Program& program, const Timeline& timeline) {
  return compute_slack(program, timeline, Blockers(program, timeline));
}

/// Whether one instruction waits for the other, through a dependency or in their lane.
bool waits_for(const Program& program, InstructionId later, InstructionId earlier) {
  const auto dependencies = program.dependencies_of(later);
  if (std::find(dependencies.begin(), dependencies.end(), earlier) != dependencies.end())
    return true;
  const std::uint32_t lane = program.instructions[later].lane;
  return lane != kNoLane && earlier < later && program.instructions[earlier].lane == lane;
}

/// Ops of the given ranks that all begin at 0 and end together.
Case make_tied(const std::vector<std::int32_t>& ranks) {
  Case made;
  made.program.ranks = 3;
  for (std::int32_t rank = 0; rank < 3; ++rank) made.program.lanes.push_back({rank, "compute"});
  made.program.dependency_begin.push_back(0);
  for (const std::int32_t rank : ranks) {
    Instruction& instruction = made.program.instructions.emplace_back();
    instruction.lane = kNoLane;
    instruction.rank = rank;
    made.program.dependency_begin.push_back(0);
  }
  made.durations.assign(ranks.size(), 10);
  made.timeline = simulate(made.program, made.durations);
  return made;
}

TEST(CriticalPath, EndsWithTheFirstOfThoseOnTheHighestRank) {
  for (const auto& [ranks, last] : std::vector<std::pair<std::vector<std::int32_t>, InstructionId>>{
           {{0, 2, 1}, 1}, {{2, 0, 1}, 0}, {{0, 1, 1}, 1}, {{1}, 0}}) {
    const Case made = make_tied(ranks);
    EXPECT_EQ(find_last(made.program, made.timeline), last);
    EXPECT_EQ(path_of(made.program, made.timeline), std::vector{last});
  }
}

TEST(CriticalPath, IsAnUnbrokenChainFromTheFirstStartToTheLastEnd) {
  std::mt19937 random(20240610);
  for (int round = 0; round < 1000; ++round) {
    const Case made = random_case(random);
    const std::vector<InstructionId> path = path_of(made.program, made.timeline);
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(made.timeline.start[path.front()], 0) << round;
    EXPECT_EQ(made.timeline.end[path.back()], made.makespan) << round;
    for (std::size_t at = 1; at < path.size(); ++at) {
      ASSERT_EQ(made.timeline.start[path[at]], made.timeline.end[path[at - 1]]) << round;
      ASSERT_TRUE(waits_for(made.program, path[at], path[at - 1])) << round;
    }
  }
}

TEST(CriticalPath, LengthensTheStepWhereverItIsLengthened) {
  std::mt19937 random(20240611);
  for (int round = 0; round < 200; ++round) {
    const Case made = random_case(random);
    for (const InstructionId id : path_of(made.program, made.timeline)) {
      std::vector<Nanos> longer = made.durations;
      longer[id] += 3;
      ASSERT_EQ(compute_makespan(simulate(made.program, longer)), made.makespan + 3) << round;
    }
  }
}

TEST(Slack, IsExactlyHowMuchLongerAnInstructionCouldTakeForFree) {
  std::mt19937 random(20240612);
  for (int round = 0; round < 200; ++round) {
    const Case made = random_case(random);
    const std::vector<Nanos> slack = slack_of(made.program, made.timeline);
    for (InstructionId id = 0; id < made.program.size(); ++id) {
      std::vector<Nanos> longer = made.durations;
      longer[id] += slack[id];
      ASSERT_EQ(compute_makespan(simulate(made.program, longer)), made.makespan) << round;
      ++longer[id];
      ASSERT_EQ(compute_makespan(simulate(made.program, longer)), made.makespan + 1) << round;
    }
  }
}

/// A measured step: everything except messages may start later than it could.
struct MeasuredCase {
  Program program;
  std::vector<Nanos> durations;
  std::vector<Nanos> gaps;

  Timeline run(const std::vector<Nanos>& taken) const {
    Timeline timeline;
    std::vector<Nanos> lane_end(program.lanes.size(), 0);
    for (InstructionId id = 0; id < program.size(); ++id) {
      const std::uint32_t lane = program.instructions[id].lane;
      Nanos ready = lane == kNoLane ? 0 : lane_end[lane];
      for (const InstructionId awaited : program.dependencies_of(id))
        ready = std::max(ready, timeline.end[awaited]);
      timeline.start.push_back(ready + gaps[id]);
      timeline.end.push_back(ready + gaps[id] + taken[id]);
      if (lane != kNoLane) lane_end[lane] = timeline.end[id];
    }
    return timeline;
  }
};

/// Whether an instruction has a blocker that no dependency states: a message that ends in a gap
/// looks like a blocking send.
bool has_unstated(const MeasuredCase& made) {
  return Blockers(made.program, made.run(made.durations)).has_unstated();
}

MeasuredCase measured_case(std::mt19937& random) {
  MeasuredCase made{random_program(random), {}, {}};
  made.durations = random_durations(made.program, random);
  made.gaps = random_durations(made.program, random);
  for (InstructionId id = 0; id < made.program.size(); ++id)
    if (is_message(made.program.instructions[id])) made.gaps[id] = 0;
  return made;
}

TEST(MeasuredCriticalPath, ExplainsTheStepToTheNanosecondWithItsGaps) {
  std::mt19937 random(20261122);
  for (int round = 0; round < 1000; ++round) {
    const MeasuredCase made = measured_case(random);
    const Timeline timeline = made.run(made.durations);
    const std::vector<InstructionId> path = path_of(made.program, timeline);
    const std::vector<Nanos> slack = slack_of(made.program, timeline);
    Nanos sum = 0;
    for (const PathPart& part : measure_path(path, timeline)) {
      EXPECT_EQ(part.time, made.durations[part.id]) << round;
      EXPECT_GE(part.gap, 0) << round;
      EXPECT_EQ(slack[part.id], 0) << round;
      sum += part.gap + part.time;
    }
    EXPECT_EQ(sum, compute_makespan(timeline)) << round;
  }
}

// A replay has no gaps. So an instruction of the critical path may have slack there, but no more
// than the sum of the path's gaps.
TEST(MeasuredCriticalPath, HasLessSlackInAReplayThanItHasGaps) {
  std::mt19937 random(20261123);
  int counted = 0;
  for (int round = 0; round < 500; ++round) {
    const MeasuredCase made = measured_case(random);
    if (has_unstated(made)) continue;
    ++counted;
    const Timeline timeline = made.run(made.durations);
    const std::vector<InstructionId> path = path_of(made.program, timeline);
    Nanos gaps = 0;
    for (const PathPart& part : measure_path(path, timeline)) gaps += part.gap;
    const Timeline replayed = simulate(made.program, made.durations);
    const std::vector<Nanos> slack = slack_of(made.program, replayed);
    for (const InstructionId id : path) ASSERT_LE(slack[id], gaps) << round;
  }
  EXPECT_GT(counted, 50);
}

TEST(MeasuredSlack, IsExactlyHowMuchLongerAnInstructionCouldTakeIfGapsStay) {
  std::mt19937 random(20261124);
  int counted = 0;
  for (int round = 0; round < 500; ++round) {
    const MeasuredCase made = measured_case(random);
    if (has_unstated(made)) continue;
    ++counted;
    const Timeline timeline = made.run(made.durations);
    const std::vector<Nanos> slack = slack_of(made.program, timeline);
    const Nanos end = find_step_bounds(timeline).end;
    for (InstructionId id = 0; id < made.program.size(); ++id) {
      if (is_message(made.program.instructions[id])) continue;
      std::vector<Nanos> longer = made.durations;
      longer[id] += slack[id];
      ASSERT_EQ(find_step_bounds(made.run(longer)).end, end) << round;
      ++longer[id];
      ASSERT_EQ(find_step_bounds(made.run(longer)).end, end + 1) << round;
    }
  }
  EXPECT_GT(counted, 50);
}

}  // namespace
}  // namespace bubblescope::tests
