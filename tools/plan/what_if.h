// Sweeps without a model: schedules and shapes under the cost flags.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/analysis/plan.h"
#include "sim/ir/program.h"
#include "sim/predict/config.h"
#include "tools/flags/options.h"
#include "tools/inputs/inputs.h"

namespace bubblescope::tools {

/// The axes of a sweep. Every combination that a schedule supports is one configuration.
struct Axes {
  std::vector<std::string> schedules;
  std::vector<std::int32_t> ranks;
  std::vector<std::int32_t> chunks;  ///< empty: each schedule's default
  std::vector<std::int32_t> microbatches;
  std::optional<std::int32_t> slices = {};  ///< for all schedules; nullopt: each schedule's default
  bool moe_overlap = false;                 ///< for the schedules that have it
  Profile profile = Profile::kNone;         ///< whose groups of micro-batches interleaved ones have
};

/// A sweep of this size takes minutes and half a gigabyte.
inline constexpr std::size_t kMaxConfigurations = 1'000'000;

/// Throws Error for more than kMaxConfigurations. Call it before creating them.
void expect_plannable(std::size_t configurations);

/// Returns the flags of shapes, with a configuration's values for its schedule.
ShapeOptions shape_of(const Configuration& configuration, ShapeOptions shape);

/// Returns an upper bound on the number of configurations that combine() creates.
std::size_t count_configurations(const Axes& axes);

/// Creates all configurations. A schedule with a fixed number of chunks has one configuration per
/// number of ranks and micro-batches. A schedule that equals another one with few chunks or slices
/// has none there. Where the usual groups of micro-batches delay a schedule, it has
/// those that do not (find_full_groups). Throws Error for more than kMaxConfigurations.
std::vector<Configuration> combine(const Axes& axes);

/// Whether a word of a list of schedules stands for several.
bool names_a_group(std::string_view word);

/// Whether a list of schedules has such a word.
bool lists_schedule_group(const std::string& list, std::string_view group);

/// Expands a list of schedules: names, separated by commas. "all" is every synchronous schedule
/// that trains and has a fixed order for its shape, and so is "auto", to which sweeps add the
/// searched ones where they are few. "searched" is every one that searches for an
/// order first, in tenths of a second. "vocab" is every one that splits the output layer of a model
/// over all ranks. `sliced` adds those that slice sequences.
std::vector<std::string> expand_schedules(const std::string& list, bool sliced,
                                          bool has_model = false);

/// Returns a rank's share of a whole model's times, to the nearest nanosecond. Halves of a backward
/// that are not given follow from its share.
UniformCost divide_among_ranks(CostOptions whole, std::int32_t ranks);

/// Returns the limits in units of one rank's share, where they are given in those of a whole model.
std::vector<Millionths> multiply_by_ranks(std::vector<Millionths> caps, std::int32_t ranks);

/// Evaluates the configurations of a sweep; may be used from several threads.
class WhatIf {
 public:
  /// `inputs` come without --pp, --vpp and -m. With `whole_model`, the costs, memory and caps are
  /// those of one micro-batch through all stages, and are divided by --pp.
  WhatIf(PredictInputs inputs, bool whole_model);

  /// Builds, lowers and predicts a configuration; a plain one in a single walk.
  Outcome evaluate(const Configuration& configuration,
                   Detail detail = Detail::kBriefWithBound) const;

  /// The schedule and program of a configuration, to be timed with several costs.
  struct Lowered {
    ValidSchedule schedule;
    Program program = {};
  };
  /// Builds and lowers a configuration. Throws Error if it cannot be built.
  Lowered lower_plan(const Configuration& configuration) const;
  /// Simulates the step, with the links that messages share under --network.
  Nanos step(const Lowered& lowered, const UniformCost& cost) const;

  /// Returns the costs of one rank's share in this configuration.
  UniformCost cost_of(const Configuration& configuration) const;
  /// Returns the costs from the flags: those of one rank's share, or of the whole model.
  const UniformCost& flags() const { return inputs_.flags().cost.uniform; }
  /// Returns the costs of one rank's share under other flags.
  UniformCost share_of_rank(UniformCost flags, const Configuration& configuration) const;
  bool divides_model() const { return whole_model_; }
  bool has_cost_file() const { return inputs_.files().costs.has_value(); }
  /// Whether a longer op can make a step shorter.
  bool shares_links() const { return inputs_.flags().cost.network.has_value(); }

 private:
  Lowered lower_plan(Schedule order) const;
  std::vector<Millionths> caps_of(const Configuration& configuration) const;
  PredictInputs inputs_of(const Configuration& configuration) const;

  PredictInputs inputs_;  ///< the costs of a whole model are not divided yet
  bool whole_model_;
};

}  // namespace bubblescope::tools
