// Recomputation: the positions of R's, their cost and the memory that they save.
#include "sim/ir/recompute.h"

#include <gtest/gtest.h>

#include "sim/analysis/analyze.h"
#include "sim/engine/simulate.h"
#include "sim/ir/error.h"
#include "sim/ir/validate.h"
#include "tests/support/as_written.h"
#include "tests/support/built_schedule.h"
#include "tests/support/measured_schedule.h"
#include "traces/schedules/native_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

TEST(Recompute, IsJustBeforeTheBackward) {
  const Schedule schedule = with_recompute(build("1f1b", 2, 3), {Recompute::kFull});
  EXPECT_EQ(order_text(schedule.order[0]), "0F0 0F1 0R0 0B0 0F2 0R1 0B1 0R2 0B2");
  EXPECT_TRUE(validate(schedule).empty());
}

TEST(Recompute, IsBeforeBothOpsOfAPairAndBeforeIAlone) {
  const Schedule pair =
      traces::parse_schedule_text("0F0 (0F1;0B0)OVERLAP_F_B 0I1 0W1 | 1F0 1B0 1F1 1I1 1W1", "pair");
  const Schedule schedule = with_recompute(pair, {Recompute::kFull});
  EXPECT_EQ(order_text(schedule.order[0]), "0F0 0R0 (0F1;0B0)OVERLAP_F_B 0R1 0I1 0W1");
  EXPECT_TRUE(validate(schedule).empty());
}

TEST(Recompute, IsAskedOfEachStage) {
  const Schedule schedule =
      with_recompute(build("1f1b", 2, 1), {Recompute::kSelective, Recompute::kNone});
  EXPECT_EQ(order_text(schedule.order[0]), "0F0 0R0 0B0");
  EXPECT_EQ(order_text(schedule.order[1]), "1F0 1B0");
  EXPECT_EQ(schedule.recompute(0), Recompute::kSelective);
}

TEST(Recompute, OfOnePipelineHoldsForBoth) {
  const Schedule schedule =
      with_recompute(build("dualpipe", 2, 4), {Recompute::kFull, Recompute::kNone});
  EXPECT_EQ(schedule.recompute(2), Recompute::kFull);
  EXPECT_EQ(schedule.recompute(3), Recompute::kNone);
  EXPECT_TRUE(validate(schedule).empty());
}

TEST(Recompute, ReadsTheWeightsOfItsForward) {
  const Schedule schedule = with_recompute(build("pipedream", 4, 12), {Recompute::kFull});
  for (const Problem& problem : validate(schedule)) ADD_FAILURE() << to_string(problem);
  EXPECT_TRUE(validate(schedule).empty());
}

TEST(Recompute, KeepsIdleSlotsAndMessagesOfAFile) {
  const Schedule schedule = with_recompute(
      traces::parse_schedule_text("0F0 0SEND_F0 _ 0RECV_B0 0B0 | 1RECV_F0 1F0 1B0 1SEND_B0"),
      {Recompute::kFull});
  EXPECT_EQ(order_text(schedule.posted[0]), "0F0 0SEND_F0  0RECV_B0 0R0 0B0");
  EXPECT_TRUE(validate(schedule).empty());
}

TEST(Recompute, SurvivesANativeFile) {
  const Schedule schedule =
      with_recompute(build("1f1b", 2, 2), {Recompute::kFull, Recompute::kNone});
  EXPECT_TRUE(traces::read_native_schedule(traces::write_native_schedule(schedule), "f.json") ==
              schedule);
}

TEST(Recompute, RefusesWhatHasNoBackwardOrRecomputesAlready) {
  const auto refuse = [](const Schedule& schedule, const std::vector<Recompute>& stages) {
    try {
      with_recompute(schedule, stages);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::vector<Recompute> full{Recompute::kFull};
  EXPECT_NE(refuse(build("forward-only", 2, 2), full).find("forward only"), std::string::npos);
  EXPECT_NE(refuse(with_recompute(build("1f1b", 2, 2), full), full).find("already (0R0)"),
            std::string::npos);
  EXPECT_NE(refuse(build("1f1b", 4, 4), {Recompute::kFull, Recompute::kFull}).find("2 entries"),
            std::string::npos);
}

TEST(Recompute, IsCheckedAgainstTheStages) {
  Schedule schedule = with_recompute(build("1f1b", 2, 1), {Recompute::kFull});
  schedule.recompute_of_stage = {Recompute::kNone, Recompute::kFull};
  const Problems superfluous = validate(schedule);
  ASSERT_EQ(superfluous.size(), 1u);
  EXPECT_NE(to_string(superfluous[0]).find("0R0 is on stage 0"), std::string::npos);
  schedule.recompute_of_stage = {Recompute::kFull, Recompute::kFull};
  schedule.order[0].erase(schedule.order[0].begin() + 1);
  const Problems missing = validate(schedule);
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_NE(to_string(missing[0]).find("0R0 is missing"), std::string::npos);
  schedule.recompute_of_stage = {Recompute::kFull};
  EXPECT_NE(to_string(validate(schedule)[0]).find("names 1 stage of 2"), std::string::npos);
}

/// The catalogue's row "GPipe or 1F1B + full remat": an R op runs while its rank waits for the
/// gradient, so the bubble stays (p-1) (F+B); as part of B it grows to (p-1) (2F+B).
TEST(Recompute, AsAnOpLeavesTheBubbleUnchanged) {
  for (const char* name : {"gpipe", "1f1b"})
    for (std::int32_t ranks = 1; ranks <= 6; ++ranks)
      for (std::int32_t microbatches = 1; microbatches <= 14; ++microbatches)
        for (const auto& [forward, backward] :
             {std::pair<Nanos, Nanos>{10, 20}, {10, 10}, {7, 30}}) {
          UniformCost cost;
          cost.forward = forward;
          cost.backward = backward;
          const Schedule schedule = build(name, ranks, microbatches);
          const Schedule recomputed = with_recompute(schedule, {Recompute::kFull});
          const Nanos work = microbatches * (2 * forward + backward);
          EXPECT_EQ(simulate_times(recomputed, cost).makespan,
                    work + (ranks - 1) * (forward + backward))
              << name << " p=" << ranks << " m=" << microbatches;
          cost.backward = forward + backward;
          EXPECT_EQ(simulate_times(schedule, cost).makespan,
                    work + (ranks - 1) * (2 * forward + backward))
              << name << " p=" << ranks << " m=" << microbatches;
        }
}

/// Rank r of 1F1B has min(m, p-r) checkpoints, and one whole micro-batch during its backward.
TEST(Recompute, HoldsCheckpointsAndOneWholeMicrobatch) {
  MemoryModel memory;
  memory.saved = {250'000, 500'000};
  memory.activation_bytes.assign(4, {1000, 0, -1000});
  memory.checkpoint_bytes.assign(4, 250);
  const Schedule schedule = with_recompute(build("1f1b", 4, 8), {Recompute::kFull});
  const Program program = lower_or_throw(schedule);
  const Timeline timeline = simulate(program, spread(UniformCost{}, schedule));
  const BubbleReport report = analyze(schedule, program, timeline, memory);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double checkpoints = 4 - static_cast<double>(rank);
    EXPECT_DOUBLE_EQ(report.ranks[rank].peak.chunks, 0.25 * checkpoints + 0.75);
    EXPECT_DOUBLE_EQ(report.ranks[rank].peak.units, 0.25 * checkpoints + 0.75);
    EXPECT_EQ(report.ranks[rank].peak.bytes, 250 * (4 - static_cast<Bytes>(rank)) + 750);
    EXPECT_EQ(report.ranks[rank].busy_by_kind[static_cast<std::size_t>(BusyKind::kR)], 8'000'000);
  }
}

/// A forward takes 1 ms; GPT-3's attention is 2.7 % of that, and 70 % of the memory is released.
TEST(Recompute, OfAttentionIsCheapAndSavesSome) {
  const Schedule schedule = with_recompute(build("gpipe", 1, 4), {Recompute::kSelective});
  const CostModel costs = spread(UniformCost{}, schedule);
  EXPECT_EQ(costs.stages[0].recompute, 27'000);
  const Program program = lower_or_throw(schedule);
  const BubbleReport report = analyze(schedule, program, simulate(program, costs));
  EXPECT_NEAR(report.ranks[0].peak.chunks, 4 * 0.298246 + 0.701754, 1e-9);
}

}  // namespace
}  // namespace bubblescope::tests
