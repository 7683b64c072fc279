// Tests costs of measured workers for schedules that place stages otherwise.
#include "sim/model/keep_workers.h"

#include <gtest/gtest.h>

#include <vector>

#include "sim/model/model_step.h"
#include "tests/support/unordered_schedule.h"

namespace bubblescope::tests {
namespace {

std::vector<StageEntry> stages_of(const std::vector<Nanos>& forwards) {
  std::vector<StageEntry> stages;
  for (const Nanos forward : forwards) {
    StageEntry& stage = stages.emplace_back();
    stage.forward = forward;
    stage.backward = 2 * forward;
  }
  return stages;
}

/// Replica 1 has a rank 1 that takes 1.5 times as long as its stage elsewhere.
CostTable slow_rank() {
  CostTable table;
  table.divisible = true;
  table.stages = stages_of({100, 250});
  table.replicas = {stages_of({100, 200}), stages_of({100, 300}), stages_of({100, 200})};
  return table;
}

std::vector<Nanos> forwards_of(const std::vector<StageEntry>& stages) {
  std::vector<Nanos> forwards;
  for (const StageEntry& stage : stages) forwards.push_back(stage.forward);
  return forwards;
}

// Four stages: halves of both, in turn on ranks 0 and 1. Rank 1 stays slow with the stages that it
// has there, and the slow stage's second half is as fast as elsewhere on rank 0.
TEST(KeepWorkers, ASlowRankStaysSlowWithOtherStages) {
  const CostTable kept = keep_workers(slow_rank(), unordered(2, 1), unordered(2, 2));
  ASSERT_EQ(kept.replicas.size(), 3U);
  EXPECT_EQ(forwards_of(kept.replicas[0]), (std::vector<Nanos>{50, 50, 100, 100}));
  EXPECT_EQ(forwards_of(kept.replicas[1]), (std::vector<Nanos>{50, 75, 100, 150}));
  EXPECT_EQ(kept.replicas[1][3].backward, 300);
}

// Two chunks per rank were measured; rank 1 is slow with both.
TEST(KeepWorkers, StagesOfOneRankShareItsSpeed) {
  CostTable table = slow_rank();
  table.stages = stages_of({40, 40, 40, 40});
  table.replicas = {table.stages, stages_of({40, 50, 40, 50})};
  const CostTable kept = keep_workers(table, unordered(2, 2), unordered(2, 1));
  EXPECT_EQ(forwards_of(kept.replicas[0]), (std::vector<Nanos>{80, 80}));
  EXPECT_EQ(forwards_of(kept.replicas[1]), (std::vector<Nanos>{80, 100}));
}

// The shards of an output layer, one on each rank, are no stages that are cut.
TEST(KeepWorkers, ASlowRankStaysSlowWithItsShard) {
  CostTable table;
  table.stages = stages_of({100, 200, 10, 10});
  table.replicas = {table.stages, stages_of({100, 300, 10, 15}), table.stages};
  const CostTable kept = keep_workers(table, make_unordered_schedule({2, 1, 1, 1, {}}, 2),
                                      make_unordered_schedule({2, 2, 1, 1, {}}, 2));
  EXPECT_EQ(forwards_of(kept.stages), (std::vector<Nanos>{50, 50, 100, 100, 10, 10}));
  EXPECT_EQ(forwards_of(kept.replicas[0]), forwards_of(kept.stages));
  EXPECT_EQ(forwards_of(kept.replicas[1]), (std::vector<Nanos>{50, 75, 100, 150, 10, 15}));
}

TEST(KeepWorkers, NothingChangesWhereStagesStayOrNothingIsKnownOfRanks) {
  const CostTable table = slow_rank();
  const auto replica_of = [](const CostTable& kept) { return forwards_of(kept.replicas[1]); };
  EXPECT_EQ(replica_of(keep_workers(table, unordered(2, 1), unordered(2, 1))),
            (std::vector<Nanos>{100, 300}));
  CostTable alone = table;
  alone.replicas.resize(1);
  EXPECT_EQ(forwards_of(keep_workers(alone, unordered(2, 1), unordered(2, 2)).replicas[0]),
            (std::vector<Nanos>{100, 200}));
  CostTable whole = table;
  whole.divisible = false;
  EXPECT_EQ(replica_of(keep_workers(whole, unordered(2, 1), unordered(2, 2))),
            (std::vector<Nanos>{100, 300}));
}

}  // namespace
}  // namespace bubblescope::tests
