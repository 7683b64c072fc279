// Plans for a model on so many devices: every way to spread it that may fit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/analysis/plan.h"
#include "tools/options.h"

namespace bubblescope {

/// What is varied for a model; what is empty is chosen: powers of two that fit, and for the ranks
/// of the pipeline what divides the devices.
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
  /// The first is tried everywhere, each other one where it may be better than those before it.
  std::vector<LayerSplit> splits{LayerSplit::kBalanced, LayerSplit::kEven, LayerSplit::kEnds,
                                 LayerSplit::kFitted};
};

/// One question, and all that it can be answered with.
class ModelPlanner {
 public:
  /// Throws Error for an unknown model or device, or where devices or batch are missing.
  ModelPlanner(const PredictOptions& options, ModelAxes axes);

  /// Every combination whose ranks use all devices and whose micro-batches are whole. Those of one
  /// schedule and shape stand in a row, and of them those that differ in the split alone.
  std::vector<Configuration> configurations() const;

  const ModelOnDevices& model() const { return base_; }
  const std::vector<LayerSplit>& splits() const { return axes_.splits; }
  /// The model as a configuration spreads it, without its layers' split.
  ModelOnDevices on(const Configuration& configuration) const;
  /// Whether states may be smaller where those with 32-bit gradients do not fit.
  bool may_shrink_gradients() const { return !options_.model.gradients; }
  /// The flags with a configuration's shape.
  PredictOptions options_of(const Configuration& configuration) const;

 private:
  std::vector<Configuration> shapes_of(const Configuration& parallel) const;
  std::vector<Configuration> parallelisms() const;
  std::int32_t expert_split(const Configuration& parallel) const;

  PredictOptions options_;
  ModelAxes axes_;
  ModelOnDevices base_;
};

}  // namespace bubblescope
