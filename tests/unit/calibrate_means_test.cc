// Costs under contention are scaled until they reproduce the means of the steps they come from.
#include "tools/commands/calibrate_means.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tools/inputs/predict.h"

namespace bubblescope::tests {
namespace {

constexpr std::size_t kStages = 4;

/// Times with 1 and 2 busy ranks of a device, which two ranks share.
exec::ContendedTimes make_times() {
  exec::ContendedTimes times(kStages);
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    times[stage][static_cast<std::size_t>(OpKind::kForward)] = {1'000'000, 1'300'000};
    times[stage][static_cast<std::size_t>(OpKind::kInputGrad)] = {1'200'000, 1'500'000};
    times[stage][static_cast<std::size_t>(OpKind::kWeightGrad)] = {800'000, 1'100'000};
    times[stage][static_cast<std::size_t>(OpKind::kBackward)] = {2'000'000, 2'500'000};
  }
  return times;
}

CostTable make_table(const exec::ContendedTimes& times) {
  CostTable table;
  table.ranks_per_device = 2;
  for (const auto& kinds : times) {
    const auto alone = [&](OpKind kind) { return kinds[static_cast<std::size_t>(kind)][0]; };
    StageEntry& entry = table.stages.emplace_back();
    entry.forward = alone(OpKind::kForward);
    entry.backward = alone(OpKind::kBackward);
    entry.input_grad = alone(OpKind::kInputGrad);
    entry.weight_grad = alone(OpKind::kWeightGrad);
    entry.contended.emplace();
    for (std::size_t kind = 0; kind < kinds.size(); ++kind)
      if (!kinds[kind].empty()) (*entry.contended)[kind] = {kinds[kind][1]};
  }
  return table;
}

tools::TimedStep predict_with(const CostTable& table, const std::string& name) {
  tools::PredictOptions options;
  options.shape.ranks = kStages;
  options.shape.microbatches = 12;
  options.cost.file = "a table";
  return tools::predict_timed_step(name, tools::PredictInputs(options, {.costs = table}));
}

// The device takes 4 % longer for every F, 7 % for the last stage's I and 3 % less for the first
// stage's B. What turns of ranks say of it is the table without that.
TEST(CalibratedMeans, AreThoseOfTheMeasuredSteps) {
  exec::ContendedTimes real = make_times();
  std::vector<std::array<double, kComputeKinds>> longer(kStages);
  for (auto& kinds : longer) {
    kinds.fill(1);
    kinds[static_cast<std::size_t>(OpKind::kForward)] = 1.04;
  }
  longer[3][static_cast<std::size_t>(OpKind::kInputGrad)] = 1.07;
  longer[0][static_cast<std::size_t>(OpKind::kBackward)] = 0.97;
  tools::scale_times(real, longer);

  std::vector<tools::Measurement> measured;
  std::vector<exec::Observation> observations;
  for (const char* name : {"1f1b", "zb-h1"})
    measured.push_back({predict_with(make_table(real), name)});
  for (const tools::Measurement& each : measured)
    observations.push_back({each.step.program, {&each.step.timeline, 1}});
  const exec::Calibration calibration = exec::calibrate(observations, kStages);

  const tools::PredictInputs inputs;
  exec::ContendedTimes times = make_times();
  const auto shortfalls = [&] {
    return tools::find_shortfalls(make_table(times), {measured, calibration, inputs});
  };
  for (int correction = 0; correction < 3; ++correction) tools::scale_times(times, shortfalls());
  // Means leave out a tenth of the ops at both ends, so they jump a little.
  for (std::size_t stage = 0; stage < kStages; ++stage)
    for (std::size_t kind = 0; kind < kComputeKinds; ++kind)
      EXPECT_NEAR(shortfalls()[stage][kind], 1, 0.005) << "stage " << stage << ", kind " << kind;
  // Neither schedule tells more of an op than its mean, so single times differ a little.
  for (const char* name : {"gpipe", "zb-h2", "eager-1f1b"}) {
    const auto step = static_cast<double>(predict_with(make_table(real), name).report.makespan);
    const auto again = static_cast<double>(predict_with(make_table(times), name).report.makespan);
    const auto before =
        static_cast<double>(predict_with(make_table(make_times()), name).report.makespan);
    EXPECT_NEAR(again, step, 0.003 * step) << name;
    EXPECT_GT(std::abs(before - step), 0.01 * step) << name;
  }
}

}  // namespace
}  // namespace bubblescope::tests
