// Contention: ops slow down while other ranks of their device are busy, by the factors of the
// costs.
#include "sim/model/contention.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <variant>

#include "sim/engine/simulate.h"
#include "sim/engine/simulate_shared.h"
#include "sim/ir/error.h"
#include "sim/ir/lower.h"
#include "sim/model/cost_table.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

/// Slows every kind of op of every stage equally.
Contention slowed(std::size_t stages, std::int32_t ranks_per_device, const Slowdown& slowdown) {
  Contention contention;
  contention.ranks_per_device = ranks_per_device;
  contention.stages.resize(stages);
  for (auto& kinds : contention.stages) kinds.fill(slowdown);
  return contention;
}

Timeline run(const Program& program, std::vector<Nanos> alone, const Contention& contention) {
  Traffic traffic;
  traffic.fixed = std::move(alone);
  return simulate_shared(program, with_contention(std::move(traffic), program, contention))
      .timeline;
}

using Ends = std::vector<Nanos>;

/// One independent forward per rank.
Program forwards_apart(std::int32_t ranks) {
  Program program;
  program.ranks = ranks;
  program.dependency_begin.assign(static_cast<std::size_t>(ranks) + 1, 0);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    program.lanes.push_back({rank, "compute"});
    program.instructions.push_back(
        {forward(rank, 0), static_cast<std::uint32_t>(rank), rank, rank});
  }
  return program;
}

/// The ends of forwards with these durations.
Ends run_apart(const std::vector<Nanos>& alone, const Contention& contention) {
  return run(forwards_apart(static_cast<std::int32_t>(alone.size())), alone, contention).end;
}

TEST(ContentionTracker, TwoOpsOfEqualLengthSlowEachOtherToTheirEnds) {
  EXPECT_EQ(run_apart({100, 100}, slowed(2, 2, {1.25})), (Ends{125, 125}));
}

// Both run at 4/5 of the full rate until the first has done 50 ns of work at 62.5 ns, rounded up to
// 63. By then the other has done 50.4 ns; its remaining 49.6 run at the full rate, so it ends at
// 112.6, rounded up to 113.
TEST(ContentionTracker, AnOpContinuesFasterWhenTheOtherHasEnded) {
  EXPECT_EQ(run_apart({100, 50}, slowed(2, 2, {1.25})), (Ends{113, 63}));
}

// With three busy ranks ops take 2 x, so at 40 each has done 20; then two at 1.5 x, so the second's
// remaining 20 take 30 ns; then the last has done 40 and runs its remaining 40 alone.
TEST(ContentionTracker, EveryNumberOfBusyRanksHasItsOwnProgressRate) {
  EXPECT_EQ(run_apart({80, 40, 20}, slowed(3, 3, {1.5, 2})), (Ends{110, 70, 40}));
}

TEST(ContentionTracker, MoreRanksThanTheCostsKnowUseTheLastEntry) {
  EXPECT_EQ(run_apart({100, 100, 100}, slowed(3, 3, {1.5})), (Ends{150, 150, 150}));
}

TEST(ContentionTracker, DevicesDoNotSlowEachOther) {
  EXPECT_EQ(run_apart({100, 100, 100}, slowed(3, 2, {1.5})), (Ends{150, 150, 100}));
  EXPECT_EQ(run_apart({100, 100}, slowed(2, 1, {1.5})), (Ends{100, 100}));
}

TEST(ContentionTracker, WithoutSlowdownItIsTheDataflowPassForEverySchedule) {
  std::mt19937_64 random(7);
  for (const ScheduleDef& def : Registry<ScheduleDef>::instance().all()) {
    SCOPED_TRACE(def.name);
    Schedule schedule;
    try {
      schedule = build_schedule(def, {{4, 1, 8, 1, {}}, {}, {}});
    } catch (const Error&) {
      continue;
    }
    const Program program = std::get<Program>(lower(schedule));
    std::vector<Nanos> durations;
    for (InstructionId id = 0; id < program.size(); ++id)
      durations.push_back(static_cast<Nanos>(random() % 50));
    const Timeline plain = simulate(program, durations);
    for (const Slowdown& none : {Slowdown{}, Slowdown{1, 1, 1}}) {
      const Timeline found =
          run(program, durations, slowed(static_cast<std::size_t>(schedule.stages()), 4, none));
      EXPECT_EQ(found.start, plain.start);
      EXPECT_EQ(found.end, plain.end);
    }
  }
}

// 0F0 alone for 100 ns, 0F1 and 1F0 together for 125, 1F1 alone for 100.
TEST(ContentionTracker, WaitingRanksSlowNoOtherRank) {
  const Schedule schedule =
      build_schedule(find_schedule("forward-only"), {{2, 1, 2, 1, {}}, {}, {}});
  const Program program = std::get<Program>(lower(schedule));
  std::vector<Nanos> durations;
  for (const Instruction& instruction : program.instructions)
    durations.push_back(is_compute(instruction.op.kind) ? 100 : 0);
  const Timeline found = run(program, durations, slowed(2, 2, {1.25}));
  EXPECT_EQ(compute_makespan(found), 325);
}

// Noise stretches an op of 14.4 s by 1000: four hours are 14.4e12 ns of 720,720 parts each, over
// 2^63. Both run at 4/5 of the full rate: 18e12 ns.
TEST(ContentionTracker, OpsThatNoiseMakesHoursLongEndOnTime) {
  const Program program = forwards_apart(2);
  Traffic traffic;
  traffic.fixed = {14'400'000'000, 14'400'000'000};
  traffic = with_contention(std::move(traffic), program, slowed(2, 2, {1.25}));
  const SharedSimulator simulator(program, traffic);
  const Nanos hours = 14'400'000'000'000;
  EXPECT_EQ(simulator.run(std::vector{hours, hours}).timeline.end,
            (Ends{18'000'000'000'000, 18'000'000'000'000}));
  // The short one takes 1.25 hours, in which the long one does 1 of its 4 hours; then 3 alone.
  EXPECT_EQ(simulator.run(std::vector{hours, hours / 4}).timeline.end,
            (Ends{15'300'000'000'000, 4'500'000'000'000}));
}

TEST(ContentionTracker, AnOpOfOverAnHourIsRefused) {
  EXPECT_EQ(error_of([&] { run_apart({kMaxContendedDuration + 1}, slowed(1, 1, {})); }),
            "0F0 takes over an hour, which is too long for a contended op; give it a shorter "
            "time, or no contention");
}

// B is I, which takes 5 ns as it does alone, and W, which takes 10 instead of 5: 15 / 10.
TEST(Contention, OfOneHalfSlowsTheFullBackward) {
  for (const OpKind slowed_half : {OpKind::kInputGrad, OpKind::kWeightGrad}) {
    CostTable table;
    StageEntry& entry = table.stages.emplace_back();
    entry.input_grad = entry.weight_grad = 5;
    entry.contended.emplace()[static_cast<std::size_t>(slowed_half)] = {10};
    const Schedule schedule = build_schedule(find_schedule("gpipe"), {{1, 1, 1, 1, {}}, {}, {}});
    const std::optional<Contention> made = make_contention(table, schedule);
    ASSERT_TRUE(made);
    EXPECT_EQ(made->stages[0][static_cast<std::size_t>(OpKind::kBackward)], Slowdown{1.5});
  }
}

}  // namespace
}  // namespace bubblescope::tests
