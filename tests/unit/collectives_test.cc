// UNSHARD, RESHARD and REDUCE_GRAD of posted lists: validation, times, round trips.
#include <gtest/gtest.h>

#include <string>

#include "sim/analysis/analyze.h"
#include "sim/analysis/suggest_receives.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/ir/shard_stages.h"
#include "sim/ir/validate.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"
#include "tests/support/measured_schedule.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

/// F = 1, B = 2; gathering takes 4, reducing 10.
UniformCost costs() {
  UniformCost cost;
  cost.forward = cost.input_grad = cost.weight_grad = 1;
  cost.update = {0, 10, 4};
  cost.per = UniformCost::Per::kChunk;
  return cost;
}

struct Timed {
  Schedule schedule;
  Program program;
  Timeline timeline;

  explicit Timed(const std::string& text)
      : schedule(traces::parse_schedule_text(text)),
        program(lower_or_throw(schedule)),
        timeline(simulate(program, spread(costs(), schedule))) {}

  Nanos start(const std::string& text, int nth = 0) const {
    for (InstructionId id = 0; id < program.size(); ++id)
      if (to_string(program.instructions[id].op) == text && nth-- == 0) return timeline.start[id];
    ADD_FAILURE() << "no " << text;
    return 0;
  }
};

std::string first_problem(const std::string& text) {
  const Problems problems = validate(traces::parse_schedule_text(text));
  return problems.empty() ? "" : to_string(problems[0]);
}

TEST(PostedCollectives, BlockTheOpsThatNeedThem) {
  const Timed timed("0UNSHARD 0F0 0B0 0REDUCE_GRAD 0RESHARD");
  EXPECT_EQ(timed.start("0F0"), 4);
  EXPECT_EQ(timed.start("0REDUCE_GRAD"), 7);
  EXPECT_EQ(timed.start("0RESHARD"), 7);
  EXPECT_EQ(compute_makespan(timed.timeline), 17);
}

TEST(PostedCollectives, AreSyncWhereARankWaitsForThem) {
  const Timed timed("0UNSHARD 0F0 0B0 0REDUCE_GRAD 0RESHARD");
  const BubbleReport report = analyze(timed.schedule, timed.program, timed.timeline);
  const auto sync = static_cast<std::size_t>(IdleCause::kSync);
  EXPECT_EQ(report.ranks[0].idle_by_cause[sync], 14);
  EXPECT_EQ(report.ranks[0].idle, 14);
}

TEST(PostedCollectives, GatherTheNextStageBesideTheOpsOfThisOne) {
  // The second UNSHARD runs from 4 to 8, while 0F0..0F3 run from 4 to 8.
  const Timed timed(
      "0UNSHARD 1UNSHARD 0F0 0F1 0F2 0F3 1F0 1F1 1F2 1F3 1B0 1B1 1B2 1B3 0B0 0B1 0B2 0B3");
  EXPECT_EQ(timed.start("1F0"), 8);
}

TEST(PostedCollectives, GatherAgainOnlyWhenThereIsMemory) {
  // 1UNSHARD follows 0RESHARD, which waits for 0F0 (4 to 5), so it ends at 9.
  const Timed timed("0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1B0 1RESHARD 0UNSHARD 0B0 0RESHARD");
  EXPECT_EQ(timed.start("1F0"), 9);
  EXPECT_EQ(timed.start("0UNSHARD", 1), 12);  // after 1B0, from 10 to 12
  EXPECT_EQ(timed.start("0B0"), 16);
}

TEST(PostedCollectives, BlockTheNextOpOnlyIfItIsWaitedFor) {
  // 1B0 ends at 4, and the reduction, which takes 10, at 14.
  EXPECT_EQ(Timed("0F0 1F0 1B0 1REDUCE_GRAD 1WAIT_REDUCE_GRAD 0B0").start("0B0"), 14);
  EXPECT_EQ(Timed("0F0 1F0 1B0 1REDUCE_GRAD 0B0").start("0B0"), 4);
}

TEST(ValidateCollectives, FindsAnOpWithoutItsParameters) {
  EXPECT_EQ(first_problem("0UNSHARD 0F0 0RESHARD 0B0"),
            "0B0 needs the parameters of stage 0; add 0UNSHARD before it");
  EXPECT_EQ(first_problem("0F0 0B0 0REDUCE_GRAD"), "");  // never sharded
}

TEST(ValidateCollectives, FindsMisplacedCells) {
  EXPECT_NE(first_problem("0F0 0B0 1REDUCE_GRAD | 1F0 1B0").find("does not hold"),
            std::string::npos);
  EXPECT_NE(first_problem("0UNSHARD 0UNSHARD 0F0 0B0")
                .find("gathers parameters that are gathered already"),
            std::string::npos);
  EXPECT_NE(
      first_problem("0RESHARD 0UNSHARD 0F0 0B0").find("drops parameters that are not gathered"),
      std::string::npos);
  EXPECT_NE(first_problem("0F0 0B0 0OPT").find("`optimizer`"), std::string::npos);
}

TEST(ShardStages, GathersTheNextThreeStagesAndDropsTheOthers) {
  Schedule schedule;
  schedule.shape = {1, 4, 1, 1, {}};
  schedule.rank_of_stage = {0, 0, 0, 0};
  schedule.order.resize(1);
  for (std::int32_t stage = 0; stage < 4; ++stage) schedule.order[0].push_back(forward(stage, 0));
  for (std::int32_t stage = 3; stage >= 0; --stage) schedule.order[0].push_back(backward(stage, 0));
  EXPECT_EQ(order_text(shard_stages(schedule).posted[0]),
            "0UNSHARD 1UNSHARD 2UNSHARD 0F0 0RESHARD 3UNSHARD 1F0 2F0 3F0 3B0 3REDUCE_GRAD "
            "3RESHARD 0UNSHARD 2B0 2REDUCE_GRAD 2RESHARD 1B0 1REDUCE_GRAD 1RESHARD 0B0 "
            "0REDUCE_GRAD 0RESHARD");
}

TEST(ShardStages, IsLegalAndKeepsItsCellsWhenReceivesMove) {
  ScheduleRequest request;
  request.shape = {2, 1, 2, 1, {}};
  const Schedule schedule = shard_stages(build_schedule(find_schedule("interleaved"), request));
  EXPECT_TRUE(validate(schedule).empty());
  LowerOptions options;
  options.mode = P2pMode::kRendezvous;
  options.posting = ReceivePosting::kDeferred;
  const auto suggestion = suggest_receives(schedule, options, spread(costs(), schedule));
  ASSERT_TRUE(suggestion);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto cells_of = [](const RankOrder& list) {
      RankOrder cells = list;
      std::erase_if(cells, [](const Op& op) { return !is_collective(op.kind); });
      return cells;
    };
    EXPECT_EQ(cells_of(suggestion->posted[rank]), cells_of(schedule.posted[rank]));
  }
  Schedule improved = schedule;
  improved.posted = suggestion->posted;
  EXPECT_TRUE(validate(improved).empty());
}

}  // namespace
}  // namespace bubblescope::tests
