// Evaluates one way to distribute a model: from its configuration to a row of the plan.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/layer_split.h"
#include "sim/ir/program.h"
#include "sim/model/model_step.h"
#include "sim/predict/models.h"
#include "tools/plan/model_plan.h"

namespace bubblescope::tools {

/// Evaluates configurations one after another, for one thread. Refers to the planner. The orders of
/// registered schedules and their programs do not depend on costs, so both are kept for the next
/// configuration of the same schedule and shape.
class ModelEvaluator {
 public:
  explicit ModelEvaluator(const ModelPlanner& planner, LowerBound bound = LowerBound::kFind)
      : planner_(planner), bound_(bound) {}

  /// Builds, lowers, simulates and analyzes, unless the states alone do not fit, or another split
  /// covers this one. The step includes what is not overlapped of the gradients' reduction and the
  /// optimizer.
  Outcome evaluate(const Configuration& configuration);

 private:
  struct Ordered {
    std::string name;
    Shape asked;
    ValidSchedule schedule;
    std::variant<Program, Deadlock> program;
  };

  /// Shared by the splits of one configuration.
  struct SplitChoice {
    Configuration first;
    Outcome refused;                                 ///< why all of them are no plans
    std::vector<std::optional<LayerCounts>> layers;  ///< [split]; nullopt: not worth a try
  };

  const SplitChoice& choose_splits(const Configuration& configuration);
  /// Returns what the fullest rank needs where the only split that is worth a try does not fit even
  /// with the smallest states: then nothing needs to be timed. nullopt where copies change what is
  /// held.
  static std::optional<Bytes> find_excess_alone(const ModelOnDevices& with_smallest_states,
                                                const LayerAssigner& assigner,
                                                const ValidSchedule& schedule,
                                                const SplitChoice& split_choice);
  const Ordered& order(const Configuration& configuration, const ModelStep& unordered);
  Outcome simulate_plan(const Configuration& configuration, const LayerCounts& layers) const;
  /// Uses the largest gradients that fit, unless the flags choose.
  Outcome simulate_plan(const Configuration& configuration, ModelOnDevices here) const;
  /// Why what a rank holds at the most is too much; nothing where all fits.
  std::optional<Outcome> refuse_memory(const Configuration& configuration,
                                       const ModelOnDevices& here, const Models& models,
                                       const BubbleReport& held) const;
  Plan with_rates(Plan plan, const ModelOnDevices& here) const;

  const ModelPlanner& planner_;
  LowerBound bound_;
  std::optional<Ordered> ordered_;
  std::optional<SplitChoice> split_choice_;
};

}  // namespace bubblescope::tools
