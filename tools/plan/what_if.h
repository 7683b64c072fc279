// What-if sweeps: schedules and shapes under the cost flags, without a model.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/analyze.h"
#include "sim/analysis/plan.h"
#include "sim/ir/program.h"
#include "tools/flags/options.h"
#include "tools/inputs/predict.h"
#include "traces/costs/cost_file.h"

namespace bubblescope::tools {

/// The axes of a sweep: every combination that a schedule supports is one configuration.
struct Axes {
  std::vector<std::string> schedules;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;  ///< empty: each schedule's default
  std::vector<std::int32_t> microbatches;
  std::optional<std::int32_t> slices = {};  ///< for all; nullopt: each schedule's default
};

/// A sweep of this size takes minutes and half a gigabyte.
inline constexpr std::size_t kMaxConfigurations = 1'000'000;

/// Throws Error for more; called before they are made.
void expect_plannable(std::size_t configurations);

/// Returns an upper bound on the configurations that combine() makes.
std::size_t count_configurations(const Axes& axes);

/// Makes all configurations. Schedules with a fixed number of chunks have one per ranks and
/// micro-batches; those that equal another schedule with few chunks or slices have none there.
/// Throws Error for more than kMaxConfigurations.
std::vector<Configuration> combine(const Axes& axes);

/// Expands a list of schedules: names, separated by commas; "all" is every synchronous schedule
/// that trains and whose order is fixed by its shape, "searched" every one that searches for an
/// order first, which takes tenths of a second each. `sliced` adds those that slice sequences.
std::vector<std::string> expand_schedules(const std::string& list, bool sliced);

/// Evaluates the configurations of a sweep; may be used from several threads.
class WhatIf {
 public:
  /// `options` come without --pp, --vpp and -m. With `whole_model`, the costs, memory and caps are
  /// those of one micro-batch through all stages, and are divided by --pp.
  WhatIf(PredictOptions options, bool whole_model);

  /// The whole walk: build, lower, simulate, analyze.
  Outcome evaluate(const Configuration& configuration, LowerBound bound = LowerBound::kFind) const;

  /// A configuration's schedule and program, to be timed under several costs.
  struct Lowered {
    ValidSchedule schedule;
    Program program = {};
  };
  /// Throws Error where it cannot be built.
  Lowered lower_plan(const Configuration& configuration) const;
  /// Simulates the step, with the links that messages share under --network.
  Nanos step(const Lowered& lowered, const UniformCost& cost) const;

  /// Returns the costs of one rank's share in this configuration.
  UniformCost cost_of(const Configuration& configuration) const;
  /// Returns the flags as given: for one rank's share, or for the whole model.
  const UniformCost& flags() const { return options_.cost.uniform; }
  /// Returns the costs of one rank's share under other flags.
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
  std::optional<CostTable> file_;  ///< content of --costs
};

}  // namespace bubblescope::tools
