// Lists of messages and the releases of PyTorch that take them.
#include <gtest/gtest.h>

#include <vector>

#include "sim/ir/pytorch_lists.h"
#include "sim/ir/validate.h"
#include "tests/support/old_pytorch_lists.h"
#include "traces/schedules/text_schedule.h"

namespace bubblescope::tests {
namespace {

// Without reductions, PyTorch 2.15 leaves gradients unscaled; 2.14 scales them by itself. The
// result is what `convert 1f1b` writes from the start.
TEST(PytorchLists, OfAnOlderReleaseGetReductionsToo) {
  const std::vector<RankOrder> lists =
      make_pytorch_lists(require_valid(traces::parse_schedule_text(kOldLists)));
  const Schedule fresh = traces::parse_schedule_text("0F0 0F1 0B0 0B1 | 1F0 1B0 1F1 1B1");
  EXPECT_EQ(lists, make_pytorch_lists(require_valid(fresh)));
}

TEST(ValidateRelease, FindsWaitsThatAreMissingOrUnknown) {
  const Schedule old_lists = traces::parse_schedule_text(kOldLists);
  EXPECT_TRUE(validate_release(old_lists, PytorchRelease::kFrom26).empty());
  const Problems missing = validate_release(old_lists, PytorchRelease::kFrom215);
  ASSERT_EQ(missing.size(), 4u);  // sends
  EXPECT_EQ(to_string(missing[0]),
            "0SEND_F0 has no wait; add its WAIT_SEND_F after it, as PyTorch 2.15 requires");
  Schedule lists = old_lists;
  lists.posted = make_pytorch_lists(require_valid(old_lists));
  EXPECT_TRUE(validate_release(lists, PytorchRelease::kFrom215).empty());
  const Problems unknown = validate_release(lists, PytorchRelease::kFrom26);
  ASSERT_EQ(unknown.size(), 6u);  // 4 sends, 2 reductions
  EXPECT_EQ(to_string(unknown[0]),
            "0WAIT_SEND_F0 is not known to PyTorch before 2.15; remove all waits");
  EXPECT_TRUE(
      validate_release(traces::parse_schedule_text("0F0 0B0"), PytorchRelease::kFrom215).empty());
}

}  // namespace
}  // namespace bubblescope::tests
