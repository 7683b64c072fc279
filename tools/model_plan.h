// Plans for a model on so many devices: every way to spread it that fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "tools/options.h"

namespace bubblescope {

/// What is varied for a model; what is empty is chosen: powers of two that fit.
struct ModelAxes {
  std::int32_t gpus = 0;
  std::int64_t global_batch = 0;  ///< samples of one step
  std::vector<std::string> schedules;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;
  std::vector<std::int32_t> tensor;
  std::vector<std::int32_t> context{1};
  std::vector<std::int32_t> expert;  ///< empty: 1, and what divides a model's experts
  std::vector<std::int32_t> micro_batch_sizes{1, 2, 4};
  std::vector<Recompute> recomputes{Recompute::kNone, Recompute::kFull};
};

class ModelPlanner {
 public:
  /// Throws Error for an unknown model or device, or where devices or batch are missing.
  ModelPlanner(const PredictOptions& options, ModelAxes axes);

  /// Every combination whose ranks use all devices and whose micro-batches are whole.
  std::vector<Configuration> configurations() const;

  /// The whole walk; without it where the states alone do not fit. The step includes what of the
  /// gradients' reduction and of the optimizer is not overlapped.
  Outcome evaluate(const Configuration& configuration) const;

  const ModelOnDevices& model() const { return base_; }

 private:
  ModelOnDevices on(const Configuration& configuration) const;
  PredictOptions options_of(const Configuration& configuration) const;
  Schedule build(const Configuration& configuration, const CostModel& costs) const;
  Outcome simulate_plan(const Configuration& configuration) const;
  void add_rates(Plan& plan, const ModelOnDevices& here) const;
  void add_shapes(const Configuration& parallel, std::vector<Configuration>& all) const;

  PredictOptions options_;
  ModelAxes axes_;
  ModelOnDevices base_;
};

}  // namespace bubblescope
