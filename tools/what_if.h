// The plain what-if: schedules and shapes under the cost flags, without a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/plan.h"
#include "sim/ir/program.h"
#include "tools/options.h"
#include "tools/predict.h"
#include "traces/cost_file.h"

namespace bubblescope {

/// What is varied: every combination that a schedule has a use for is one configuration.
struct Axes {
  std::vector<std::string> schedules;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;  ///< empty: as many as each schedule usually has
  std::vector<std::int32_t> microbatches;
  std::optional<std::int32_t> slices = {};  ///< of all; nothing: as each schedule usually has
};

/// So many take minutes and half a gigabyte.
inline constexpr std::size_t kMostConfigurations = 1'000'000;

/// Throws Error for more; called before they are made.
void expect_plannable(std::size_t configurations);

/// How many configurations combine() makes at the most.
std::size_t count_configurations(const Axes& axes);

/// Schedules that imply their chunks have one configuration per ranks and micro-batches; those that
/// are another schedule with few chunks or slices have none there. Throws Error for more than
/// kMostConfigurations.
std::vector<Configuration> combine(const Axes& axes);

/// The schedules that a list stands for: names, separated by commas; "all" is every synchronous
/// schedule that trains and whose order is fixed by its shape, "searched" every one that looks for
/// an order first, which takes tenths of a second each. `sliced`: with those that cut sequences.
std::vector<std::string> schedules_of(const std::string& list, bool sliced);

/// Holds for every configuration of a sweep; may be asked from several threads.
class WhatIf {
 public:
  /// `options` without --pp, --vpp and -m. `whole_model`: the costs, memory and caps are those of
  /// one micro-batch through all stages, and are divided by --pp.
  WhatIf(PredictOptions options, bool whole_model);

  /// The whole walk: build, lower, simulate, analyze.
  Outcome evaluate(const Configuration& configuration, LowerBound bound = LowerBound::kFind) const;

  /// A configuration's order and program, to be timed under several costs.
  struct Lowered {
    ValidSchedule schedule;
    Program program = {};
  };
  /// Throws Error where it cannot be built.
  Lowered lower_plan(const Configuration& configuration) const;
  /// With the links that messages share, where there is a --network.
  Nanos step(const Lowered& lowered, const UniformCost& cost) const;

  /// The cost flags of one rank's share in this configuration.
  UniformCost cost_of(const Configuration& configuration) const;
  /// The flags as they are given: of one rank's share, or of the whole model.
  const UniformCost& flags() const { return options_.cost.uniform; }
  /// What a configuration makes of other flags.
  UniformCost share_of_rank(UniformCost flags, const Configuration& configuration) const;
  bool divides_model() const { return whole_model_; }
  bool has_cost_file() const { return file_.has_value(); }
  /// Whether a longer op can make a step shorter.
  bool shares_links() const { return options_.cost.network.has_value(); }

 private:
  PredictOptions options_of(const Configuration& configuration) const;
  Models models_of(const ValidSchedule& schedule, const Configuration& configuration) const;

  PredictOptions options_;
  bool whole_model_;
  std::optional<CostFile> file_;  ///< of --costs, read once
};

}  // namespace bubblescope
