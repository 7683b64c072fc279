// compare --backend: predicted and measured steps side by side.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/timeline_difference.h"
#include "tools/commands/measure.h"

namespace bubblescope::tools {

/// The error of a prediction; all members are fractions.
struct PredictionError {
  double makespan = 0;      ///< relative to the predicted makespan
  double bubble_ratio = 0;  ///< a difference of ratios
  double op_start_p50 = 0;  ///< relative to the predicted step
  double op_start_p95 = 0;
  double peak_memory = 0;  ///< relative to the peak of the fullest rank
  /// The same for the fullest pool; empty if activations have no pools.
  std::optional<double> peak_pool;
  /// The first divergence: the first op that is off by a hundredth of the step or more.
  std::optional<OpShift> first_divergence;
};

struct Comparison {
  std::string label;
  TimedStep predicted;
  Measurement measured;
  std::vector<Bytes> predicted_pools = {};  ///< [rank]; empty if activations have no pools
  PredictionError error = {};
};

/// Runs a predicted step. Throws Error if the run fails.
Comparison run_prediction(const std::string& label, TimedStep predicted, const RunContext& context);

/// The distribution of one schedule's measured step times.
struct StepSpread {
  Nanos min = 0;
  Nanos lower_quartile = 0;
  Nanos median = 0;
  Nanos upper_quartile = 0;
  Nanos max = 0;

  /// (max - min) / median.
  double relative() const { return fraction(max - min, median); }
};

/// Computes quartiles by the nearest-rank method. Requires at least one makespan.
StepSpread compute_spread(const std::vector<Nanos>& makespans);

/// Whether two schedules' measured steps differ by more than noise: the middle halves of their
/// steps do not overlap, and their medians are more than a thousandth apart.
bool are_apart(const StepSpread& left, const StepSpread& right);

/// The agreement between predicted and measured order of schedules.
struct OrderAgreement {
  std::int64_t pairs = 0;    ///< pairs whose predictions are over a thousandth apart
  std::int64_t counted = 0;  ///< those of them whose measured steps differ, too
  /// Kendall's tau over the counted pairs: 1 if all are in the measured order, -1 if none is. Empty
  /// if there are no counted pairs.
  std::optional<double> tau;
};

OrderAgreement compute_order_agreement(const std::vector<Comparison>& comparisons);

/// Returns the warning to print before any number if noise hides the differences: the steps of one
/// schedule vary by more than a tenth, or schedules cannot be told apart. Empty otherwise.
std::string describe_noise_problem(const std::vector<Comparison>& comparisons);

/// Writes the table for people.
std::string write_comparison_text(const std::vector<Comparison>& comparisons);

/// Writes one row per schedule.
std::string write_comparison_csv(const std::vector<Comparison>& comparisons);

/// Writes "bubblescope-comparison/1": the measured reports, each with its prediction and its error;
/// errors over all of them at the top.
std::string write_comparison_json(const std::vector<Comparison>& comparisons);

/// Whether the gradients of all trained schedules were verified.
bool gradients_match(const std::vector<Comparison>& comparisons);

}  // namespace bubblescope::tools
