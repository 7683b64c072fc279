// Checks the critical path and the slack of random programs against their definitions: an unbroken
// chain from the first start to the last end, and how much longer every instruction could take.
#include "sim/analysis/critical_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sim/engine/simulate.h"
#include "tests/support/random_program.h"

namespace bubblescope {
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
  made.makespan = makespan_of(made.timeline);
  return made;
}

/// Whether one instruction waits for the other, by a dependency or in their lane.
bool waits_for(const Program& program, InstructionId later, InstructionId earlier) {
  const auto dependencies = program.dependencies_of(later);
  if (std::find(dependencies.begin(), dependencies.end(), earlier) != dependencies.end())
    return true;
  const std::uint32_t lane = program.instructions[later].lane;
  return lane != kNoLane && earlier < later && program.instructions[earlier].lane == lane;
}

TEST(CriticalPath, IsAnUnbrokenChainFromTheFirstStartToTheLastEnd) {
  std::mt19937 random(20240610);
  for (int round = 0; round < 1000; ++round) {
    const Case made = random_case(random);
    const std::vector<InstructionId> path = find_critical_path(made.program, made.timeline);
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
    for (const InstructionId id : find_critical_path(made.program, made.timeline)) {
      std::vector<Nanos> longer = made.durations;
      longer[id] += 3;
      ASSERT_EQ(makespan_of(simulate(made.program, longer)), made.makespan + 3) << round;
    }
  }
}

TEST(Slack, IsExactlyHowMuchLongerAnInstructionCouldTakeForFree) {
  std::mt19937 random(20240612);
  for (int round = 0; round < 200; ++round) {
    const Case made = random_case(random);
    const std::vector<Nanos> slack = compute_slack(made.program, made.timeline);
    for (InstructionId id = 0; id < made.program.size(); ++id) {
      std::vector<Nanos> longer = made.durations;
      longer[id] += slack[id];
      ASSERT_EQ(makespan_of(simulate(made.program, longer)), made.makespan) << round;
      ++longer[id];
      ASSERT_EQ(makespan_of(simulate(made.program, longer)), made.makespan + 1) << round;
    }
  }
}

}  // namespace
}  // namespace bubblescope
