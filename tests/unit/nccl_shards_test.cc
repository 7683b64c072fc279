// Shards of matrices among the replicas of a pipeline.
#include <gtest/gtest.h>

#include "exec/nccl/shards.h"
#include "sim/ir/shard_stages.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

TEST(NcclShards, CoverAllEntriesOnceAndDifferByOneAtMost) {
  for (const std::size_t entries : {0u, 1u, 2u, 7u, 64u, 65u})
    for (std::int32_t owners = 1; owners <= 5; ++owners) {
      std::size_t begin = 0;
      for (std::int32_t owner = 0; owner < owners; ++owner) {
        const exec::Shard shard = exec::shard_of(entries, owner, owners);
        EXPECT_EQ(shard.begin, begin);
        EXPECT_GE(shard.count, entries / static_cast<std::size_t>(owners));
        EXPECT_LE(shard.count, entries / static_cast<std::size_t>(owners) + 1);
        begin = shard.end();
      }
      EXPECT_EQ(begin, entries);
    }
  // 7 entries among 3 owners: 3, 2, 2.
  EXPECT_EQ(exec::shard_of(7, 0, 3).count, 3u);
  EXPECT_EQ(exec::shard_of(7, 2, 3).begin, 5u);
}

TEST(NcclShards, AreThoseOfStagesThatTheScheduleGathers) {
  const Schedule whole = build_schedule(find_schedule("1f1b"), {{2, 1, 4, 1, {}}, {}, {}});
  EXPECT_EQ(exec::find_gathered(whole), (std::vector<bool>{false, false}));
  EXPECT_EQ(exec::find_gathered(shard_stages(whole)), (std::vector<bool>{true, true}));
}

}  // namespace
}  // namespace bubblescope::tests
