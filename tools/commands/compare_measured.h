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
  /// The clocks of the costs and of the measured steps, to which the prediction was scaled; empty
  /// where they are not known.
  std::optional<double> costs_sm_mhz = {};
  std::optional<double> measured_sm_mhz = {};
  bool over_limits = false;  ///< a rank exceeds its cap in the predicted step
};

/// Judges a prediction by what was measured.
Comparison judge_prediction(const std::string& label, TimedStep predicted, Measurement measured,
                            const RunOptions& run);

/// Returns the warning to print before any number if noise hides the differences: the steps of one
/// schedule vary by more than a tenth, or schedules cannot be told apart. Empty otherwise.
std::string describe_noise_problem(const std::vector<Comparison>& comparisons);

/// Writes one schedule's measurement and its prediction as one line of json, as soon as it exists,
/// and the best one is not known.
std::string write_result_line(const Comparison& comparison);

/// Writes the table for people.
std::string write_comparison_text(const std::vector<Comparison>& comparisons,
                                  std::optional<int> columns);

/// Writes one row per schedule.
std::string write_comparison_csv(const std::vector<Comparison>& comparisons);

/// Writes "bubblescope-comparison/1": the measured reports, each with its prediction and its error;
/// errors over all of them at the top.
std::string write_comparison_json(const std::vector<Comparison>& comparisons);

/// Whether the gradients of all trained schedules were verified.
bool gradients_match(const std::vector<Comparison>& comparisons);

}  // namespace bubblescope::tools
