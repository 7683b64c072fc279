// Layers of stages by Megatron-LM's rule, in loops of one and several chunks.
#include "sim/model/megatron_counts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "sim/model/model_step.h"
#include "tests/support/error_text.h"

namespace bubblescope::tests {
namespace {

Schedule loop_of(std::int32_t ranks, std::int32_t chunks) {
  Shape shape;
  shape.ranks = ranks;
  shape.chunks = chunks;
  return make_unordered_schedule(shape);
}

using Counts = std::vector<std::int64_t>;

std::string complaint(std::int64_t layers, const Schedule& schedule, const UnevenEnds& ends) {
  return error_of([&] { place_megatron_counts(layers, schedule, ends); });
}

// 20 layers without the 3 and 5 of the ends are 12 on 2 ranks.
TEST(MegatronCounts, AreThoseOfRanks) {
  EXPECT_EQ(place_megatron_counts(20, loop_of(4, 1), {.first = 3, .last = 5}),
            (Counts{3, 6, 6, 5}));
}

// The ends are of ranks: 6 layers are 3 on each of 2 chunks, and the 20 others 5 on each.
TEST(MegatronCounts, DivideRanksIntoEqualChunks) {
  EXPECT_EQ(place_megatron_counts(32, loop_of(4, 2), {.first = 6, .last = 6}),
            (Counts{3, 5, 5, 3, 3, 5, 5, 3}));
  EXPECT_EQ(complaint(33, loop_of(4, 2), {.first = 7, .last = 6}),
            "the 7 layers of rank 0 cannot be divided evenly into its 2 chunks; choose other "
            "`first_layers`, `last_layers` or `vpp`");
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
  EXPECT_NE(complaint(8, schedule, {.first = 4}).find("does not place its stages in a loop"),
            std::string::npos);
}

// Embedding and loss are one layer each of 32 on 34 stages, and 16 + 16 leave none for the others.
TEST(MegatronCounts, MayLeaveStagesWithoutLayers) {
  Counts counts(34, 1);
  counts.front() = counts.back() = 0;
  EXPECT_EQ(
      place_megatron_counts(32, loop_of(34, 1), {.counts_embedding = true, .counts_loss = true}),
      counts);
  EXPECT_EQ(place_megatron_counts(32, loop_of(4, 1), {.first = 16, .last = 16}),
            (Counts{16, 0, 0, 16}));
}

TEST(MegatronCounts, SayWhichEndsHaveTooMany) {
  EXPECT_EQ(complaint(32, loop_of(4, 1), {.first = 100, .last = 100}),
            "the ends have 200 layers, but there are only 32; choose a smaller `first_layers` or "
            "`last_layers`");
  EXPECT_EQ(complaint(32, loop_of(4, 1), {.last = 33}),
            "the ends have 33 layers, but there are only 32; choose a smaller `last_layers`");
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(complaint(32, loop_of(4, 1), {.first = kMost, .last = kMost}),
            "the ends have 4294967294 layers, but there are only 32; choose a smaller "
            "`first_layers` or `last_layers`");
}

TEST(MegatronCounts, SayThatOneStageIsOneEnd) {
  EXPECT_EQ(complaint(32, loop_of(1, 1), {.first = 16, .last = 16}),
            "one stage cannot have `first_layers` and `last_layers`; give one of them");
  EXPECT_EQ(place_megatron_counts(32, loop_of(1, 1), {.first = 32}), Counts{32});
}

TEST(MegatronCounts, SayThatNoStageTakesTheRest) {
  EXPECT_EQ(complaint(32, loop_of(2, 1), {.first = 16, .last = 15}),
            "the ends have 31 of 32 layers, and there is no other stage for the rest; choose a "
            "larger `first_layers` or `last_layers`");
  EXPECT_EQ(complaint(32, loop_of(1, 1), {.first = 16}),
            "the ends have 16 of 32 layers, and there is no other stage for the rest; choose a "
            "larger `first_layers`");
}

// 32 - 6 = 26 layers on 3 ranks, and 32 + 1 = 33 on 4.
TEST(MegatronCounts, SayWhichLayersDoNotDivide) {
  EXPECT_EQ(
      complaint(32, loop_of(4, 1), {.first = 6}),
      "26 layers cannot be divided evenly into the 3 inner stages; choose other `first_layers` "
      "or `last_layers`");
  EXPECT_EQ(complaint(32, loop_of(4, 1), {.counts_loss = true}),
            "33 layers, the loss among them, cannot be divided evenly into 4 stages; give "
            "`first_layers` or `last_layers` instead");
}

}  // namespace
}  // namespace bubblescope::tests
