// Plans for a model on a number of devices: every way to distribute it that may fit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/plan.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// Samples of a micro-batch, where a plan is not told which to try.
inline constexpr std::array<std::int32_t, 3> kUsualMicroBatchSizes{1, 2, 4};

/// One value of a plan's --recompute.
struct RecomputeChoice {
  Recompute recompute = Recompute::kNone;
  /// Whether the plan chooses the modules to recompute. If a split does not fit without
  /// recomputation, it gets the set that makes it fit in the least time.
  bool chooses_modules = false;
  RecomputedLayers layers = {};  ///< of every stage, where all of a layer is recomputed

  bool operator==(const RecomputeChoice&) const = default;
};

/// The axes of a model's plan. Empty ones are chosen: powers of two that fit, and for the ranks of
/// the pipeline the divisors of the number of devices.
struct ModelAxes {
  std::int32_t gpus = 0;
  std::int64_t global_batch = 0;  ///< samples of one step
  std::vector<std::string> schedules;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;
  std::vector<std::int32_t> tensor;
  std::vector<std::int32_t> context;            ///< empty: 1
  std::vector<std::int32_t> expert;             ///< empty: 1, and what divides a model's experts
  std::vector<std::int32_t> expert_tensor;      ///< empty: as Parallelism chooses it
  std::vector<std::int32_t> micro_batch_sizes;  ///< empty: kUsualMicroBatchSizes
  std::vector<RecomputeChoice> recomputes{
      {Recompute::kNone}, {Recompute::kSelective, true}, {Recompute::kFull}};
  std::optional<RecomputeMethod> recompute_method;
  std::vector<std::int32_t> recompute_layers;  ///< --recompute-num-layers; 0: none of a stage's
  std::vector<std::int32_t> send_budgets{0};   ///< 0: ranks do not wait for their sends
  std::vector<std::optional<UnshardLookahead>> lookaheads{std::nullopt};
  /// The first is always tried, each other one where it may be better than those before it.
  std::vector<LayerSplit> splits{LayerSplit::kBalanced, LayerSplit::kEven, LayerSplit::kEnds,
                                 LayerSplit::kFitted};
};

/// The question of a plan, and all configurations that may answer it.
class ModelPlanner {
 public:
  /// `inputs` have a model. Throws Error where devices or batch are missing.
  ModelPlanner(PredictInputs inputs, ModelAxes axes);

  /// Every combination whose ranks use all devices and whose micro-batches are whole. Those of one
  /// schedule and shape are adjacent, and among them those that differ only in the split.
  std::vector<Configuration> configurations() const;

  const ModelOnDevices& model() const { return std::get<ModelCosts>(inputs_.config().costs).on; }
  /// Returns the axes, completed by those that were chosen.
  const ModelAxes& axes() const { return axes_; }
  const std::vector<LayerSplit>& splits() const { return axes_.splits; }
  /// Whether other configurations recompute nothing.
  bool tries_without_recomputation() const;
  /// The model as a configuration distributes it, without the split of its layers.
  ModelOnDevices on(const Configuration& configuration) const;
  /// Whether smaller gradients may be tried where 32-bit ones do not fit.
  bool may_shrink_gradients() const { return !inputs_.flags().model.gradients; }
  /// Whether the flags allow that all ranks hold so much.
  bool allows(Bytes held) const;
  /// Returns of what a number of devices is best a multiple: of a node, or all if they are fewer,
  /// and of the ranks of the smallest replica that was listed.
  std::int64_t find_multiple_of_devices() const;
  /// Returns the inputs of a configuration, without the split of its layers.
  PredictInputs inputs_of(const Configuration& configuration) const;

 private:
  std::vector<Configuration> shapes_of(const Configuration& parallel) const;
  std::vector<Configuration> parallelisms() const;
  /// Divides the experts of each configuration in all ways that were asked for.
  std::vector<Configuration> with_expert_ranks(std::vector<Configuration> configurations) const;
  std::int32_t expert_split(const Configuration& parallel) const;

  PredictInputs inputs_;
  ModelAxes axes_;
  bool chooses_ranks_ = false;  ///< no --pp was listed
};

}  // namespace bubblescope::tools
