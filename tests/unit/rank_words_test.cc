#include "traces/measured/rank_words.h"

#include <gtest/gtest.h>

#include <optional>

namespace bubblescope::tests {
namespace {

TEST(RankWords, TellNumbersOfRanksFromOthers) {
  const struct {
    const char* name;
    std::optional<int> number;
    bool is_rank = false;
    bool is_device = false;
  } cases[] = {
      {"Rank 3", 3, true},
      {"rank[12] main", 12, true},
      {"dp0 pp2", 2, true},
      {"PP rank 1, TP rank 0", 1, true},
      {"node 1 rank 5 (pid 7788)", 5, true},
      {"GPU:2", 2, false, true},
      {"cuda3", 3, false, true},
      {"stage 4 (7788)", 4},  // of which a rank may run several
      {"trace_4", 4},
      {"2334", 2334},
      {"dp rank[1]", std::nullopt},
      {"local_rank_1", std::nullopt},
      {"data parallel rank 1", std::nullopt},
      {"tensor_parallel_rank1.json", std::nullopt},
      {"data parallel rank 0, pipeline parallel rank 2", 2, true},
      {"dprank1", std::nullopt},
      {"pprank1", 1, true},
      {"mb 3", std::nullopt},
      {"iteration_10", std::nullopt},
      {"chunk 1", std::nullopt},
      {"python 3.11", std::nullopt},
      {"megatronapp1 2", std::nullopt},
      {"main", std::nullopt},
      {"99999999999", std::nullopt},
  };
  for (const auto& one : cases) {
    const auto found = traces::find_rank_number(one.name);
    ASSERT_EQ(found.has_value(), one.number.has_value()) << one.name;
    if (!found) continue;
    EXPECT_EQ(found->number, *one.number) << one.name;
    EXPECT_EQ(found->is_rank, one.is_rank) << one.name;
    EXPECT_EQ(found->is_device, one.is_device) << one.name;
  }
}

TEST(RankWords, TellPartsOfARank) {
  EXPECT_TRUE(traces::names_part_of_rank("chunk 1"));
  EXPECT_TRUE(traces::names_part_of_rank("stream 7"));
  EXPECT_FALSE(traces::names_part_of_rank("GPU 1"));
}

}  // namespace
}  // namespace bubblescope::tests
