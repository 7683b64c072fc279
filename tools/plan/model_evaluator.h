// Evaluates one way to distribute a model: from its configuration to a row of the plan.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/layer_split.h"
#include "sim/ir/program.h"
#include "sim/model/model_step.h"
#include "sim/predict/predict.h"
#include "tools/plan/model_plan.h"

namespace bubblescope::tools {

/// Evaluates configurations one after another, for one thread. It refers to the planner, which must
/// outlive it. The orders and programs of registered schedules do not depend on costs, so the last
/// ones are reused if the next configuration has the same schedule and shape.
class ModelEvaluator {
 public:
  explicit ModelEvaluator(const ModelPlanner& planner, Detail detail = Detail::kBriefWithBound)
      : planner_(planner), detail_(detail) {}

  /// Builds, lowers, simulates and analyzes a configuration, unless its states alone do not fit or
  /// another split covers it. The step includes the parts of the gradients' reduction and of the
  /// optimizer that are not overlapped.
  Outcome evaluate(const Configuration& configuration);

 private:
  struct Ordered {
    std::string name;
    Shape asked;
    std::int32_t send_budget = 0;
    std::optional<UnshardLookahead> lookahead;
    Config config;  ///< of the first configuration with this order
    ValidSchedule schedule;
    std::variant<Program, Deadlock> program;
  };

  /// The choices that all splits of one configuration share.
  struct SplitChoice {
    Configuration first;
    Outcome refused;                                 ///< why none of them became a plan
    std::vector<std::optional<LayerCounts>> layers;  ///< [split]; nullopt if not worth trying
    /// [split]; set for configurations that choose modules.
    std::vector<RecomputeModules> modules;
  };

  const SplitChoice& choose_splits(const Configuration& configuration);
  void assign_splits(const Configuration& configuration, const ModelOnDevices& here);
  /// Chooses the modules of the first split and of kFitted: the first set of list_module_sets()
  /// with which the split fits, with gradients as they are. Chooses nothing if that set is empty,
  /// or if another split does as well with it.
  void choose_modules(const Configuration& configuration, const Schedule& without_order);
  /// Empty if the layers cannot be split that way, or do not fit.
  std::optional<LayerCounts> fit_layers(const ModelOnDevices& on, const ValidSchedule& schedule,
                                        LayerSplit split) const;
  /// Refuses a configuration whose states and a single micro-batch exceed the memory.
  std::optional<Outcome> refuse_states(const ModelOnDevices& here, const Shape& shape,
                                       const Schedule& without_order) const;
  /// Returns the load with the smallest states if only one split is worth trying and they do not
  /// fit, so that nothing needs to be timed. nullopt if they fit, or if copies change what is held.
  static std::optional<SplitLoad> find_excess_alone(const ModelOnDevices& with_smallest_states,
                                                    const LayerAssigner& assigner,
                                                    const ValidSchedule& schedule,
                                                    const SplitChoice& split_choice);
  const Ordered& order(const Configuration& configuration);
  Outcome simulate_plan(const Configuration& configuration, const LayerCounts& layers) const;
  /// The same for modules that were chosen. Where the step holds more than they leave room for,
  /// continues with sets that take longer and hold less.
  Outcome simulate_modules(const Configuration& configuration, std::size_t split) const;
  /// Refuses a plan whose fullest rank exceeds its memory; empty if all ranks fit.
  static std::optional<Outcome> refuse_memory(Plan plan, const PredictedStep& step);
  Plan with_rates(Plan plan, const ModelOnDevices& here) const;

  const ModelPlanner& planner_;
  Detail detail_;
  std::optional<Ordered> ordered_;
  std::optional<SplitChoice> split_choice_;
};

}  // namespace bubblescope::tools
