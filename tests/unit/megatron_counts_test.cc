// Layers of stages by Megatron-LM's rule, in loops of one and several chunks.
#include "sim/model/megatron_counts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/ir/error.h"
#include "sim/model/model_step.h"

namespace bubblescope::tests {
namespace {

Schedule loop_of(std::int32_t ranks, std::int32_t chunks) {
  Shape shape;
  shape.ranks = ranks;
  shape.chunks = chunks;
  return make_unordered_schedule(shape);
}

using Counts = std::vector<std::int64_t>;

// 20 layers without the 3 and 5 of the ends are 12 on 2 ranks.
TEST(MegatronCounts, AreThoseOfRanks) {
  EXPECT_EQ(place_megatron_counts(20, loop_of(4, 1), {.first = 3, .last = 5}),
            (Counts{3, 6, 6, 5}));
}

// The ends are of ranks: 6 layers are 3 on each of 2 chunks, and the 20 others 5 on each.
TEST(MegatronCounts, DivideRanksIntoEqualChunks) {
  EXPECT_EQ(place_megatron_counts(32, loop_of(4, 2), {.first = 6, .last = 6}),
            (Counts{3, 5, 5, 3, 3, 5, 5, 3}));
  EXPECT_THROW(place_megatron_counts(33, loop_of(4, 2), {.first = 7, .last = 6}), Error);
}

// The embedding is on the first stage alone, and not on all chunks of its rank.
TEST(MegatronCounts, CountEmbeddingAndLossOnTheirStages) {
  EXPECT_EQ(
      place_megatron_counts(30, loop_of(2, 2), {.counts_embedding = true, .counts_loss = true}),
      (Counts{7, 8, 8, 7}));
}

TEST(MegatronCounts, NeedALoop) {
  Schedule schedule = loop_of(2, 2);
  schedule.rank_of_stage = {0, 1, 1, 0};
  EXPECT_THROW(place_megatron_counts(8, schedule, {.first = 4}), Error);
}

}  // namespace
}  // namespace bubblescope::tests
