// Compares the quick verdict on ops with one that looks for each op that should be there.
#include "sim/ir/plain_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "sim/ir/validate.h"
#include "tests/support/random_schedule.h"

namespace bubblescope::tests {
namespace {

/// The position of the only such op on the rank of its stage; nullopt if there is not exactly one.
std::optional<std::int64_t> find_only(const Schedule& schedule, const Op& op) {
  const RankOrder& ops = schedule.order[schedule.rank_of_stage[op.stage]];
  if (std::count(ops.begin(), ops.end(), op) != 1) return {};
  return std::find(ops.begin(), ops.end(), op) - ops.begin();
}

/// Whether F and then B, or I and then W, are there.
bool has_plain_ops(const Schedule& schedule, Op op) {
  const auto place = [&](OpKind kind) {
    op.kind = kind;
    return find_only(schedule, op);
  };
  const auto forward = place(OpKind::kForward);
  const auto backward = place(OpKind::kBackward);
  const auto input_grad = place(OpKind::kInputGrad);
  const auto weight_grad = place(OpKind::kWeightGrad);
  if (!forward || backward.has_value() == input_grad.has_value()) return false;
  if (backward) return *forward < *backward && !weight_grad;
  return weight_grad && *forward < *input_grad && *input_grad < *weight_grad;
}

/// Whether all ops that should be there are there, and by their number no others.
bool are_plain_and_complete(const Schedule& schedule) {
  std::int64_t expected = 0;
  for (std::int32_t stage = 0; stage < schedule.stages(); ++stage)
    for (std::int32_t microbatch = 0; microbatch < schedule.shape.microbatches; ++microbatch)
      for (std::int16_t slice = 0; slice < schedule.shape.slices; ++slice) {
        const Op op{stage, microbatch, slice};
        if (!has_plain_ops(schedule, op)) return false;
        const Op split{stage, microbatch, slice, OpKind::kInputGrad};
        expected += find_only(schedule, split) ? 3 : 2;
      }
  return schedule.op_count() == expected;
}

TEST(PlainOps, AreValidAndNoOthersAreTaken) {
  int taken = 0;
  int refused = 0;
  for (std::uint32_t seed = 1; seed <= 8'000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomTraits traits;
    traits.slices = seed % 3 == 0;
    const Schedule whole = random_schedule(seed, traits);
    for (const Schedule& schedule : {whole, damage(whole, seed)}) {
      if (schedule.pipelines > 1) continue;
      const bool is_taken = are_plainly_valid(schedule);
      EXPECT_EQ(is_taken, are_plain_and_complete(schedule));
      EXPECT_TRUE(!is_taken || validate_ops(schedule).empty());
      ++(is_taken ? taken : refused);
    }
  }
  EXPECT_GT(taken, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace bubblescope::tests
