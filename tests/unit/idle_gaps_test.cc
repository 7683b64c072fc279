// Idle time, gap by gap.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sim/analysis/idle.h"
#include "sim/model/schedule_def.h"
#include "tests/support/recorded_step.h"

namespace bubblescope::tests {
namespace {

/// With dataflow and with a blocking mode.
std::vector<RecordedStep> schedules_in_two_modes() {
  std::vector<RecordedStep> steps = every_schedule(uneven_cost());
  for (RecordedStep& blocking : every_schedule(uneven_cost(), {.mode = P2pMode::kFifo}))
    steps.push_back(std::move(blocking));
  return steps;
}

TEST(IdleGaps, AddUpToTheReportOfEverySchedule) {
  for (const RecordedStep& step : schedules_in_two_modes()) {
    std::vector<std::array<Nanos, kIdleCauses>> sums(step.report.ranks.size());
    for (const IdleGap& gap : find_idle_gaps(step.program, step.timeline))
      sums[static_cast<std::size_t>(gap.rank)][static_cast<std::size_t>(gap.cause)] +=
          gap.end - gap.start;
    for (std::size_t rank = 0; rank < sums.size(); ++rank)
      EXPECT_EQ(sums[rank], step.report.ranks[rank].idle_by_cause)
          << step.schedule->name << " rank " << rank;
  }
}

TEST(IdleGaps, FillTheStepTogetherWithTheOps) {
  for (const RecordedStep& step : schedules_in_two_modes()) {
    const std::vector<IdleGap> gaps = find_idle_gaps(step.program, step.timeline);
    for (std::int32_t rank = 0; rank < step.program.ranks; ++rank) {
      std::vector<std::pair<Nanos, Nanos>> pieces;
      for (const IdleGap& gap : gaps)
        if (gap.rank == rank) pieces.emplace_back(gap.start, gap.end);
      for (InstructionId id = 0; id < step.program.size(); ++id)
        if (step.program.instructions[id].lane == static_cast<std::uint32_t>(rank))
          pieces.emplace_back(step.timeline.start[id], step.timeline.end[id]);
      std::sort(pieces.begin(), pieces.end());
      Nanos reached = find_step_bounds(step.timeline).start;
      for (const auto& [start, end] : pieces) {
        EXPECT_EQ(start, reached) << step.schedule->name << " rank " << rank;
        reached = end;
      }
      EXPECT_EQ(reached, find_step_bounds(step.timeline).end);
    }
  }
}

// 1F1B on two ranks, F = B = 1 ms, messages 0.25 ms: rank 1 starts after 0F0 and its message, at
// 1.25; rank 0's first B waits for 1F0 (1.25 to 2.25), 1B0 (to 3.25) and its message (to 3.5). Of
// that rank 0 computes 0F1 until 2; then waits 1.25 for the op and 0.25 for the message.
TEST(IdleGaps, NameTheCauseAndItsTime) {
  UniformCost cost;
  cost.backward = 1'000'000;
  cost.message = 250'000;
  const RecordedStep step = record_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1", cost);
  const std::vector<IdleGap> gaps = find_idle_gaps(step.program, step.timeline);
  ASSERT_GE(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].cause, IdleCause::kDependency);
  EXPECT_EQ(gaps[0].start, 2'000'000);
  EXPECT_EQ(gaps[0].end, 3'250'000);
  EXPECT_EQ(to_string(step.program.instructions[*gaps[0].before].op), "0B0");
  EXPECT_EQ(gaps[1].cause, IdleCause::kCommunication);
  EXPECT_EQ(gaps[1].start, 3'250'000);
  EXPECT_EQ(gaps[1].end, 3'500'000);
}

// A rank with less work than the busiest one waits for the difference, whatever the order.
TEST(IdleGaps, ShowImbalanceFirst) {
  const RecordedStep step = record_text("0F0 0B0 | 1F0 1B0", {});
  Timeline timeline = step.timeline;  // 0F0 0-1, 1F0 1-2, 1B0 2-4, 0B0 4-6
  for (InstructionId id = 0; id < step.program.size(); ++id) {
    const Instruction& instruction = step.program.instructions[id];
    if (instruction.rank == 0 && instruction.op.kind == OpKind::kBackward) {
      timeline.start[id] = 4'000'000;
      timeline.end[id] = 4'500'000;
    }
  }
  // Rank 0 is busy 1.5 ms, rank 1 3: of the 3 ms between 0F0 and 0B0 the first 1.5 are imbalance.
  const std::vector<IdleGap> gaps = find_idle_gaps(step.program, timeline);
  EXPECT_EQ(gaps.at(0).cause, IdleCause::kImbalance);
  EXPECT_EQ(gaps.at(0).end - gaps.at(0).start, 1'500'000);
  EXPECT_EQ(gaps.at(1).cause, IdleCause::kDependency);
  EXPECT_EQ(gaps.at(1).end, 4'000'000);
}

}  // namespace
}  // namespace bubblescope::tests
