// Numbers tell items apart where each has one of its own.
#include "traces/measured/distinct_numbers.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace bubblescope::tests {
namespace {

TEST(DistinctNumbers, AreEachOnce) {
  EXPECT_TRUE(traces::are_distinct(std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_FALSE(traces::are_distinct(std::vector<std::int32_t>{2, 0, 2}));
}

TEST(DistinctNumbers, AreThereForAll) {
  const std::vector<std::optional<std::int32_t>> numbers{0, std::nullopt};
  EXPECT_FALSE(traces::are_distinct(numbers));
  EXPECT_TRUE(traces::are_distinct(numbers, [](const auto& number) { return number.value_or(1); }));
}

}  // namespace
}  // namespace bubblescope::tests
