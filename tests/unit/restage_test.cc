// Tests costs of models that are cut into another number of stages.
#include "sim/model/restage.h"

#include <gtest/gtest.h>

#include "sim/model/model_step.h"
#include "tests/support/error_text.h"
#include "tests/support/unordered_schedule.h"

namespace bubblescope::tests {
namespace {

CostTable table_of(const std::vector<Nanos>& forwards) {
  CostTable table;
  table.divisible = true;
  for (const Nanos forward : forwards) {
    StageEntry stage;
    stage.forward = forward;
    stage.backward = 2 * forward;
    table.stages.push_back(stage);
  }
  return table;
}

std::vector<Nanos> forwards_of(const CostTable& table) {
  std::vector<Nanos> forwards;
  for (const StageEntry& stage : table.stages) forwards.push_back(stage.forward);
  return forwards;
}

TEST(Restage, CutsStagesIntoEqualParts) {
  const CostTable cut = restage(table_of({10, 20}), unordered(2, 2));
  EXPECT_EQ(forwards_of(cut), (std::vector<Nanos>{5, 5, 10, 10}));
  EXPECT_EQ(cut.stages[3].backward, 20);
}

TEST(Restage, LeavesShardsOfTheOutputLayer) {
  const CostTable table = table_of({10, 20, 3, 4});
  const Schedule cut = make_unordered_schedule({2, 2, 1, 1, {}}, 2);
  EXPECT_EQ(forwards_of(restage(table, cut, 2)), (std::vector<Nanos>{5, 5, 10, 10, 3, 4}));
  EXPECT_FALSE(is_restaged(table, make_unordered_schedule({2, 1, 1, 1, {}}, 2), 2));
  EXPECT_FALSE(is_restaged(table, cut));  // these would be four stages
  EXPECT_FALSE(is_restaged(table, unordered(2, 1), 2));
}

TEST(Restage, JoinsStages) {
  EXPECT_EQ(forwards_of(restage(table_of({1, 2, 3, 4}), unordered(2, 1))),
            (std::vector<Nanos>{3, 7}));
}

TEST(Restage, RefusesStagesThatAreTooMuchTogether) {
  EXPECT_EQ(error_of([&] {
              restage(table_of(std::vector<Nanos>(1200, 8'000'000'000'000'000)), unordered(1, 1));
            }),
            "the stages of the cost file together have more than 2^60 bytes or 36 years; use "
            "smaller values, or fewer");
}

// 6 thirds of a third: the boundaries of three stages out of two are at 2/3 of each.
TEST(Restage, CutsAcrossStages) {
  EXPECT_EQ(forwards_of(restage(table_of({30, 60}), unordered(3, 1))),
            (std::vector<Nanos>{20, 30, 40}));
}

TEST(Restage, KeepsTheWholeToTheNanosecond) {
  for (std::int32_t ranks = 1; ranks < 12; ++ranks) {
    Nanos sum = 0;
    for (const Nanos forward : forwards_of(restage(table_of({7, 11, 13}), unordered(ranks, 1))))
      sum += forward;
    EXPECT_EQ(sum, 31) << ranks;
  }
}

// Layers of the last stage take 1.4 times as long as others: so do those of the last of eight
// stages, each of half as many layers, and of the last of two. One stage has all of them.
TEST(Restage, HeavierEndsKeepTheirRatios) {
  CostTable table = table_of({10, 10, 10, 14});
  table.ends = Ends::kHeavierLayers;
  EXPECT_EQ(forwards_of(restage(table, unordered(4, 2))),
            (std::vector<Nanos>{5, 5, 5, 5, 5, 5, 5, 7}));
  EXPECT_EQ(restage(table, unordered(4, 2)).stages[7].backward, 14);
  EXPECT_EQ(forwards_of(restage(table, unordered(2, 1))), (std::vector<Nanos>{20, 28}));
  EXPECT_EQ(forwards_of(restage(table, unordered(1, 1))), (std::vector<Nanos>{44}));
  EXPECT_EQ(forwards_of(restage(table, unordered(4, 1))), (std::vector<Nanos>{10, 10, 10, 14}));
}

// No stage lies between two given ones, and a single stage has no ends.
TEST(Restage, HeavierEndsNeedThreeStagesAndTwoOfTheSchedule) {
  CostTable four = table_of({10, 10, 10, 14});
  four.ends = Ends::kHeavierLayers;
  EXPECT_TRUE(restages_ends(four, unordered(2, 1)));
  EXPECT_FALSE(restages_ends(four, unordered(1, 1)));
  EXPECT_FALSE(restages_ends(four, unordered(4, 1)));
  CostTable two = table_of({10, 14});
  two.ends = Ends::kHeavierLayers;
  EXPECT_FALSE(restages_ends(two, unordered(4, 1)));
  EXPECT_EQ(forwards_of(restage(two, unordered(4, 1))), (std::vector<Nanos>{5, 5, 7, 7}));
}

// Nothing needs saying about ends that are as the stages between them.
TEST(Restage, EndsMatterWhereTheyDiffer) {
  CostTable table = table_of({10, 10, 10, 10});
  EXPECT_FALSE(restages_ends(table, unordered(2, 1)));
  table.stages.back().activation_bytes = MemoryDelta{60, -20, -40};
  EXPECT_TRUE(restages_ends(table, unordered(2, 1)));
  table = table_of({10, 10, 10, 10});
  table.stages.front().backward = 31;
  EXPECT_TRUE(restages_ends(table, unordered(2, 1)));
}

TEST(Restage, HeavierEndsScaleMemoryAndUpdatesAsWell) {
  CostTable table = table_of({10, 10, 14});
  table.ends = Ends::kHeavierLayers;
  for (StageEntry& stage : table.stages) {
    stage.activation_bytes = MemoryDelta{60, -20, -40};
    stage.weight_bytes = 30;
    stage.update.optimizer = 6;
  }
  const CostTable cut = restage(table, unordered(6, 1));
  ASSERT_EQ(cut.stages.size(), 6u);
  for (const StageEntry& stage : cut.stages) {
    EXPECT_EQ(stage.activation_bytes->forward, 30);
    EXPECT_EQ(stage.activation_bytes->weight_grad, -20);
    EXPECT_EQ(stage.weight_bytes, 15);
    EXPECT_EQ(stage.update.optimizer, 3);
  }
}

// A head of 4 and 8 stays whole on the last of eight stages, and of two. Fewer layers at an end are
// no work that could be negative.
TEST(Restage, ExtraWorkOfTheEndsIsNeverCut) {
  CostTable table = table_of({10, 10, 10, 14});
  table.ends = Ends::kExtraWork;
  EXPECT_EQ(forwards_of(restage(table, unordered(4, 2))),
            (std::vector<Nanos>{5, 5, 5, 5, 5, 5, 5, 9}));
  EXPECT_EQ(restage(table, unordered(4, 2)).stages[7].backward, 18);
  EXPECT_EQ(forwards_of(restage(table, unordered(2, 1))), (std::vector<Nanos>{20, 24}));
  EXPECT_EQ(forwards_of(restage(table, unordered(1, 1))), (std::vector<Nanos>{44}));
  CostTable light = table_of({16, 10, 10, 8});
  light.ends = Ends::kExtraWork;
  EXPECT_EQ(forwards_of(restage(light, unordered(4, 2))),
            (std::vector<Nanos>{11, 5, 5, 5, 5, 5, 4, 4}));
}

TEST(Restage, ExtraWorkIsThatOfHalvesToo) {
  CostTable table = table_of({10, 10, 14});
  for (StageEntry& stage : table.stages) {
    stage.backward.reset();
    stage.input_grad = stage.forward;
    stage.weight_grad = stage.forward;
  }
  table.ends = Ends::kExtraWork;
  const CostTable cut = restage(table, unordered(6, 1));
  EXPECT_EQ(cut.stages[5].input_grad, 9);
  EXPECT_EQ(cut.stages[5].weight_grad, 9);
  EXPECT_EQ(cut.stages[5].backward, 18);
  EXPECT_EQ(cut.stages[4].backward, 10);
}

TEST(Restage, LeavesOtherTablesAlone) {
  CostTable fixed = table_of({10, 20});
  fixed.divisible = false;
  EXPECT_EQ(forwards_of(restage(fixed, unordered(4, 1))), (std::vector<Nanos>{10, 20}));
  EXPECT_FALSE(is_restaged(table_of({10, 20}), unordered(2, 1)));
}

TEST(Restage, AStageWithOnlyHalvesStillHasAFullBackward) {
  CostTable table = table_of({10, 20});
  table.stages[0].backward.reset();
  table.stages[0].input_grad = 8;
  table.stages[0].weight_grad = 12;
  const CostTable joined = restage(table, unordered(1, 1));
  EXPECT_EQ(joined.stages[0].backward, 60);
  EXPECT_FALSE(joined.stages[0].input_grad);  // stage 1 has none to add
}

}  // namespace
}  // namespace bubblescope::tests
