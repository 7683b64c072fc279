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

/// How well predictions put schedules in order: 1 where every pair is in the measured order, -1
/// where none is. Pairs that are predicted, or measured, to be equal within a thousandth count as
/// in order. Empty for fewer than two.
std::optional<double> kendall_tau(const std::vector<Comparison>& comparisons);

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
