// Megatron's layout strings, and the costs of their layers.
#include "traces/costs/megatron_layout.h"

#include <gtest/gtest.h>

#include "sim/ir/error.h"
#include "sim/model/schedule_def.h"
#include "sim/model/uneven_spread.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

TEST(MegatronLayout, ReadsTheExampleOfItsDocumentation) {
  const LayerLayout layout = traces::parse_layout("Et*3|(tt|)*29,m|L");
  ASSERT_EQ(layout.size(), 32u);
  EXPECT_EQ(layout[0], (StageLayers{.embeddings = 1, .transformers = 3}));
  EXPECT_EQ(layout[29], (StageLayers{.transformers = 2}));
  EXPECT_EQ(layout[30], (StageLayers{.predictions = 1}));
  EXPECT_EQ(layout[31], (StageLayers{.losses = 1}));
}

TEST(MegatronLayout, IsWrittenShortAndReadsBack) {
  const struct {
    const char* text;
    const char* written;
  } cases[] = {
      {"EtL", "EtL"},
      {"Ett|ttL", "Ett|ttL"},
      {"E|t,t,t|L", "E|t*3|L"},
      {"Et*3|(tt|)*29,m|L", "Et*3|(tt|)*29m|L"},
      {"Et*2|(t*2|)*34,tL", "Ett|(tt|)*34tL"},
      {"E t | | L", "Et||L"},
      {"(Et|)*1t|tL", "Et|t|tL"},
  };
  for (const auto& one : cases) {
    const LayerLayout layout = traces::parse_layout(one.text);
    EXPECT_EQ(traces::to_string(layout), one.written);
    EXPECT_EQ(traces::parse_layout(traces::to_string(layout)), layout) << one.text;
  }
}

TEST(MegatronLayout, SaysWhereItIsWrong) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"", "the first layer must be E"},
      {"ttL", "the first layer must be E"},
      {"EtE|L", "the only one"},
      {"Et|t", "the last layer must be L"},
      {"EL|tL", "the last layer must be L"},
      {"Em|tL", "put every m after the last t"},
      {"Ex|L", "column 2: 'x' is not a layer"},
      {"E(tt|L", "column 2: this ( has no )"},
      {"E(t(t)*2|)*2L", "column 4: a ( inside ( )"},
      {"Et*|L", "column 4: a number from 1 on must follow *"},
      {"Et*0L", "a number from 1 on must follow *"},
      {"Et)L", "column 3: ')' is not a layer"},
      {"E(t*1000000)*1000000L", "more layers and stages than"},
  };
  for (const auto& one : cases) {
    EXPECT_TRUE(fails_with([&] { traces::parse_layout(one.text); }, one.said));
  }
}

TEST(MegatronLayout, StagesCostWhatTheirLayersCost) {
  const LayerLayout layout = traces::parse_layout("Et|tt|tm|L");
  EXPECT_EQ(compute_stage_weights(layout, {}),
            (std::vector<std::int64_t>{1'000'000, 2'000'000, 2'000'000, 1'000'000}));
  EXPECT_EQ(compute_stage_weights(layout, {500'000, 1'000'000, 2'000'000, 0}),
            (std::vector<std::int64_t>{1'500'000, 2'000'000, 3'000'000, 0}));
  EXPECT_EQ(error_of([&] {
              compute_stage_weights(layout, {0, 0, 0, 0});
            }),
            "`layout` has no layer that costs anything; give `layout_costs` E,t,m,L");
}

TEST(UnevenSpread, SharesTheWorkOfAllStagesInProportion) {
  // Four stages of 1 ms forward and 2 ms backward; weights 1, 2, 2, 1 of 6.
  ScheduleRequest request;
  request.shape.ranks = 4;
  request.shape.microbatches = 4;
  const Schedule schedule = build_schedule(find_schedule("1f1b"), request);
  const std::vector<std::int64_t> weights{1, 2, 2, 1};
  const CostModel costs = spread_unevenly({}, schedule, weights);
  ASSERT_EQ(costs.stages.size(), 4u);
  EXPECT_EQ(costs.stages[0].forward, 666'666);    // 4 ms / 6, rounded down
  EXPECT_EQ(costs.stages[1].forward, 1'333'334);  // up to 2 ms exactly
  EXPECT_EQ(costs.stages[2].backward, 2'666'666);
  Nanos forward = 0;
  Nanos backward = 0;
  for (const StageCost& stage : costs.stages) {
    forward += stage.forward;
    backward += stage.backward;
  }
  EXPECT_EQ(forward, 4'000'000);
  EXPECT_EQ(backward, 8'000'000);
}

TEST(UnevenSpread, EqualWeightsChangeNothing) {
  ScheduleRequest request;
  request.shape.ranks = 2;
  request.shape.microbatches = 4;
  request.shape.chunks = 2;
  const Schedule schedule = build_schedule(find_schedule("interleaved"), request);
  const CostModel even = spread({}, schedule);
  const CostModel costs = spread_unevenly({}, schedule, std::vector<std::int64_t>(4, 7));
  for (std::size_t stage = 0; stage < 4; ++stage)
    EXPECT_EQ(costs.stages[stage].forward, even.stages[stage].forward);
}

}  // namespace
}  // namespace bubblescope::tests
