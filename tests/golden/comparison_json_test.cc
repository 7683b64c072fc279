// Tests what tells the reports of a comparison apart.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/command.h"

namespace bubblescope::tests {
namespace {

// Both reports are of one schedule, once in its order and once as its ranks choose.
TEST(ComparisonJson, NamesThePolicyOfAReport) {
  const nlohmann::json reports =
      read_report("compare gpipe --pp 4 -m 8 --policy ready:backward")["reports"];
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_FALSE(reports[0].contains("policy"));
  EXPECT_EQ(reports[1]["policy"], "ready");
}

}  // namespace
}  // namespace bubblescope::tests
