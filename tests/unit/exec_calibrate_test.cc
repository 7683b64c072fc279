// Costs from measured steps: the estimates equal the costs from which the steps were made.
#include <gtest/gtest.h>

#include <variant>

#include "exec/calibration/calibrate.h"
#include "sim/engine/simulate.h"
#include "sim/ir/lower.h"
#include "sim/model/schedule_def.h"
#include "tests/support/as_written.h"

namespace bubblescope::tests {
namespace {

TEST(Estimate, LeavesOutTheLongestAndShortestTenth) {
  // 1..9 and an outlier: without 1 and 1000, the mean of 2..9 is 5.
  const auto known = exec::estimate({5, 2, 3, 4, 1, 6, 7, 1000, 8, 9});
  ASSERT_TRUE(known);
  EXPECT_EQ(known->mean, 5);
  EXPECT_EQ(known->samples, 10);
  EXPECT_GT(known->half_width, 100);
  EXPECT_FALSE(exec::estimate({}));
  EXPECT_EQ(exec::estimate({7})->half_width, 0);
}

TEST(Calibrate, FindsTheCostsOfASimulatedStep) {
  const Schedule schedule =
      build_schedule(find_schedule("zb-h1"), {{3, 1, 6, 1, {}}, Profile::kNone, {}});
  const Program program = std::get<Program>(lower(schedule));
  UniformCost uniform;
  uniform.forward = 100;
  uniform.input_grad = 110;
  uniform.weight_grad = 90;
  uniform.message = 7;
  CostModel costs = spread(uniform, schedule);
  costs.stages[1].forward = 130;
  const std::vector<Timeline> steps{simulate(program, costs), simulate(program, costs)};
  const exec::Observation observation{program, steps};
  const exec::Calibration calibration = exec::calibrate({&observation, 1}, 3);
  const auto cost = [&](std::size_t stage, OpKind kind) {
    const auto& known = calibration.ops[stage][static_cast<std::size_t>(kind)];
    return known ? known->mean : Nanos{-1};
  };
  EXPECT_EQ(cost(0, OpKind::kForward), 100);
  EXPECT_EQ(cost(1, OpKind::kForward), 130);
  EXPECT_EQ(cost(2, OpKind::kInputGrad), 110);
  EXPECT_EQ(cost(2, OpKind::kWeightGrad), 90);
  EXPECT_EQ(cost(2, OpKind::kBackward), -1);
  EXPECT_EQ(calibration.message->mean, 7);
  EXPECT_EQ(calibration.message->half_width, 0);
  EXPECT_EQ(calibration.op_gap->mean, 0);
}

// Messages take 70 and ops 90 to 110, so many a message is still in flight when its reader's rank
// is free.
TEST(Calibrate, AMessageOnItsWayIsNoGapBetweenOps) {
  const Schedule schedule =
      build_schedule(find_schedule("zb-h1"), {{3, 1, 6, 1, {}}, Profile::kNone, {}});
  const Program program = std::get<Program>(lower(schedule));
  UniformCost uniform;
  uniform.forward = 100;
  uniform.input_grad = 110;
  uniform.weight_grad = 90;
  uniform.message = 70;
  const std::vector<Timeline> steps{simulate(program, spread(uniform, schedule))};
  const exec::Observation observation{program, steps};
  const exec::Calibration calibration = exec::calibrate({&observation, 1}, 3);
  EXPECT_EQ(calibration.message->mean, 70);
  EXPECT_EQ(calibration.message->half_width, 0);
  EXPECT_EQ(calibration.op_gap->mean, 0);
  EXPECT_EQ(calibration.op_gap->half_width, 0);
}

TEST(Calibrate, FindsWhatUpdatesCost) {
  // Chimera's two replicas of a stage sum their gradients before they update.
  const Schedule schedule =
      build_schedule(find_schedule("chimera"), {{2, 1, 4, 1, {}}, Profile::kNone, {}});
  LowerOptions options;
  options.update.optimizer = OptimizerMode::kLocal;
  const Program program = std::get<Program>(lower(schedule, options));
  CostModel costs = spread(UniformCost{}, schedule);
  costs.updates = {{30, 50, 0}, {31, 51, 0}, {32, 52, 0}, {33, 53, 0}};
  const std::vector<Timeline> steps{simulate(program, costs)};
  const exec::Observation observation{program, steps};
  const exec::Calibration calibration = exec::calibrate({&observation, 1}, schedule.stages());
  ASSERT_EQ(calibration.updates.size(), 4u);
  EXPECT_EQ(calibration.updates[3].optimizer->mean, 33);
  EXPECT_EQ(calibration.updates[1].reduce_grad->mean, 51);
}

}  // namespace
}  // namespace bubblescope::tests
