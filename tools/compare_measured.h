// compare --backend: predicted and measured, stacked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/timeline_difference.h"
#include "tools/measure.h"

namespace bubblescope {

/// How far a prediction was off, as fractions.
struct PredictionError {
  double makespan = 0;      ///< of the measured one from the predicted one
  double bubble_ratio = 0;  ///< of all ranks' time: a difference of ratios
  double op_start_p50 = 0;  ///< of the predicted step
  double op_start_p95 = 0;
  double peak_memory = 0;  ///< of the fullest rank's peak
  /// Of the fullest pool's peak; empty where activations have no pools.
  std::optional<double> peak_pool;
  /// Where the two first part: by a hundredth of the step or more.
  std::optional<OpShift> parting;
};

struct Comparison {
  std::string label;
  Step predicted;
  Measurement measured;
  std::vector<Bytes> predicted_pools = {};  ///< per rank; empty where activations have no pools
  PredictionError error = {};
};

/// Runs what was predicted. Throws Error where the run breaks down.
Comparison run_prediction(const std::string& label, Step predicted, const Bench& bench);

/// How long the measured steps of one schedule took.
struct StepSpread {
  Nanos min = 0;
  Nanos lower_quartile = 0;
  Nanos median = 0;
  Nanos upper_quartile = 0;
  Nanos max = 0;

  /// (max - min) / median.
  double relative() const {
    return median == 0 ? 0 : static_cast<double>(max - min) / static_cast<double>(median);
  }
};

/// The quartiles are nearest ranks. There is at least one makespan.
StepSpread spread_of(const std::vector<Nanos>& makespans);

/// Whether two schedules' measured steps differ by more than their noise: the middle halves of
/// their steps do not overlap, and their medians are more than a thousandth apart.
bool are_apart(const StepSpread& left, const StepSpread& right);

/// How well predictions put schedules in order.
struct OrderAgreement {
  std::int64_t pairs = 0;    ///< of schedules whose predictions are over a thousandth apart
  std::int64_t counted = 0;  ///< those whose measured steps are apart, too
  /// Kendall's tau over the counted pairs: 1 where all are in the measured order, -1 where none
  /// is. Empty where none counts.
  std::optional<double> tau;
};

OrderAgreement order_agreement(const std::vector<Comparison>& comparisons);

/// What is to be said before any number where noise hides the differences: that steps of one
/// schedule vary by over a tenth, or that schedules cannot be told apart. Empty elsewhere.
std::string noise_warning(const std::vector<Comparison>& comparisons);

/// The table for people.
std::string write_comparison_text(const std::vector<Comparison>& comparisons);

/// One row per schedule.
std::string write_comparison_csv(const std::vector<Comparison>& comparisons);

/// "bubblescope-comparison/1": the measured reports, each with its prediction and its error; errors
/// over all of them at the top.
std::string write_comparison_json(const std::vector<Comparison>& comparisons);

/// Whether everything that was trained was right.
bool gradients_match(const std::vector<Comparison>& comparisons);

}  // namespace bubblescope
