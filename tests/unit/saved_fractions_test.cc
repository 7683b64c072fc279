// The bytes that a forward saves where its stage recomputes, with and without an entry for them.
#include <gtest/gtest.h>

#include <string>

#include "sim/ir/recompute.h"
#include "sim/model/cost_table.h"
#include "tests/support/recorded_step.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tests {
namespace {

CostTable with_bytes(const std::string& saved, const std::string& more = "") {
  return traces::parse_cost_file(
      R"({"format":"bubblescope-costs/1","forward":1,"backward":2,"selective_recompute":1,)"
      R"("stages":[{"activation_bytes":{"saved":)" +
          saved + more + "}}]}",
      "f.json");
}

Bytes checkpoint_of(const CostTable& table, Recompute recompute, const SavedFractions& saved) {
  const RecordedStep step = record_step("1f1b", {.ranks = 1, .microbatches = 1}, {});
  const ValidSchedule schedule = with_recompute(step.schedule, {recompute});
  return make_memory_model(table, schedule, saved).checkpoint_bytes.at(0);
}

TEST(SavedFractions, HoldWhereACostFileSaysNothing) {
  const CostTable table = with_bytes("1000");
  EXPECT_EQ(checkpoint_of(table, Recompute::kSelective, {}), 298);
  EXPECT_EQ(checkpoint_of(table, Recompute::kFull, {}), 0);
  const SavedFractions given{.full = 50'000, .selective = 900'000};
  EXPECT_EQ(checkpoint_of(table, Recompute::kSelective, given), 900);
  EXPECT_EQ(checkpoint_of(table, Recompute::kFull, given), 50);
}

TEST(SavedFractions, GiveWayToTheFile) {
  const CostTable table = with_bytes("1000", R"(,"checkpoint":7,"selective_checkpoint":8)");
  const SavedFractions given{.full = 50'000, .selective = 900'000};
  EXPECT_EQ(checkpoint_of(table, Recompute::kSelective, given), 8);
  EXPECT_EQ(checkpoint_of(table, Recompute::kFull, given), 7);
}

// Bytes times millionths need more than 64 bits.
TEST(SavedFractions, OfManyBytesDoNotWrap) {
  const Bytes many = Bytes{1} << 59;
  EXPECT_EQ(checkpoint_of(with_bytes(std::to_string(many)), Recompute::kFull, {.full = 500'000}),
            many / 2);
}

}  // namespace
}  // namespace bubblescope::tests
