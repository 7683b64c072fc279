// How much the measured steps of schedules vary, and which differences that leaves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/ir/units.h"
#include "tools/commands/compare_measured.h"

namespace bubblescope::tools {

/// The distribution of one schedule's measured step times.
struct StepSpread {
  Nanos min = 0;
  Nanos lower_quartile = 0;
  Nanos median = 0;
  Nanos upper_quartile = 0;
  Nanos max = 0;
  Nanos drift = 0;  ///< between the medians of the two blocks in which the steps were measured

  /// Returns (max - min) / median.
  double relative() const { return fraction(max - min, median); }
};

/// Computes quartiles by the nearest-rank method. Requires at least one makespan.
StepSpread compute_spread(const std::vector<Nanos>& makespans);
StepSpread compute_spread(const Measurement& measurement);

/// Steps that differ by more than this fraction of their median are noisy.
inline constexpr double kMinNoise = 0.1;

/// The first line of a report on one schedule's measured steps: that they are noisy, or that
/// `ranks`, of which each keeps a core busy, take turns on fewer `cores`. Empty if neither holds.
std::string describe_noise(const StepSpread& spread, std::int32_t ranks, std::int32_t cores);

/// Whether the predicted step lies between the shortest and the longest measured one.
bool is_within_spread(const Comparison& comparison);

/// Whether two schedules' measured steps differ by more than noise: the middle halves of their
/// steps, widened by the drift between blocks, do not overlap, and their medians are more than a
/// thousandth apart.
bool are_apart(const StepSpread& left, const StepSpread& right);

/// By how much each measured step exceeds the best one, as find_excesses() has it.
std::vector<double> excesses_over_best(const std::vector<Comparison>& comparisons);

/// How many predictions the measurements cannot tell from the truth, and how far the machine
/// drifted.
std::string describe_spreads(const std::vector<Comparison>& comparisons);

/// The agreement between predicted and measured order of schedules.
struct OrderAgreement {
  std::int64_t pairs = 0;    ///< pairs whose predictions are over a thousandth apart
  std::int64_t counted = 0;  ///< those of them whose measured steps differ, too
  /// Kendall's tau over the counted pairs: 1 if all are in the measured order, -1 if none is. Empty
  /// if there are no counted pairs.
  std::optional<double> tau;
};

OrderAgreement compute_order_agreement(const std::vector<Comparison>& comparisons);

}  // namespace bubblescope::tools
