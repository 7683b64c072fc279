// Roundings that training amplifies are not a fault, and a fault is not a rounding.
#include "exec/training/verification.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "exec/training/serial_training.h"
#include "sim/ir/schedule.h"
#include "tests/support/verified_training.h"

namespace bubblescope::tests {
namespace {

Schedule pipeline(std::int32_t microbatches) {
  return *build_if_legal(find_schedule("1f1b"), {3, 1, microbatches, 1, {}});
}

/// `trained` against the same training from weights that are disturbed.
exec::Verification verify(const exec::TrainingResult& trained, std::int32_t steps) {
  const Schedule schedule = pipeline(6);
  return exec::verify(trained, exec::train_serially(schedule, small_model(), steps),
                      [&] { return exec::train_disturbed(schedule, small_model(), steps); });
}

TEST(Verification, NeedsNoSecondTrainingWithinTheTolerance) {
  const exec::TrainingResult same = exec::train_serially(pipeline(6), small_model(), 3);
  const exec::Verification found = exec::verify(same, same, []() -> exec::TrainingResult {
    ADD_FAILURE() << "trained again";
    return {};
  });
  EXPECT_TRUE(found.matches && found.exact);
}

TEST(Verification, AllowsForTheRoundingsThatManyStepsAmplify) {
  constexpr std::int32_t kSteps = 60;
  const exec::TrainingResult rounded = exec::train_disturbed(pipeline(6), small_model(), kSteps);
  const exec::TrainingResult reference = exec::train_serially(pipeline(6), small_model(), kSteps);
  ASSERT_FALSE(exec::verify(rounded, reference).matches) << "train for longer";
  const exec::Verification found = verify(rounded, kSteps);
  EXPECT_TRUE(found.matches) << found.worst << " in " << found.where;
  EXPECT_DOUBLE_EQ(found.worst, found.rounding);
  EXPECT_NE(to_string(found).find("one rounding off"), std::string::npos) << to_string(found);
}

TEST(Verification, ALostMicrobatchIsNoRounding) {
  for (const std::int32_t steps : {2, 20, 40}) {
    const exec::Verification found =
        verify(exec::train_serially(pipeline(5), small_model(), steps), steps);
    EXPECT_FALSE(found.matches) << steps << " steps";
    EXPECT_NE(to_string(found).find("WRONG"), std::string::npos) << to_string(found);
  }
}

TEST(Verification, RefusesToJudgeWhereRoundingsLookLikeFaults) {
  exec::Verification found{false, false, 0.5, 5000, "loss of step 99", 0.2, true};
  EXPECT_NE(to_string(found).find("cannot be verified"), std::string::npos) << to_string(found);
  found.is_explained = false;
  EXPECT_NE(to_string(found).find("WRONG"), std::string::npos) << to_string(found);
}

}  // namespace
}  // namespace bubblescope::tests
