// Orders schedules by their measured steps.
#include "tools/commands/measured_spread.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/ir/quantile.h"

namespace bubblescope::tools {

namespace {

constexpr double kEqual = 0.001;

/// The sign of b - a; 0 where they are equal within a thousandth.
int order(Nanos a, Nanos b) {
  const double apart = static_cast<double>(b - a);
  if (std::abs(apart) <= kEqual * static_cast<double>(std::max(a, b))) return 0;
  return apart > 0 ? 1 : -1;
}

}  // namespace

StepSpread compute_spread(const std::vector<Nanos>& makespans) {
  return {quantile(makespans, 0), quantile(makespans, 25), quantile(makespans, 50),
          quantile(makespans, 75), quantile(makespans, 100)};
}

StepSpread compute_spread(const Measurement& measurement) {
  const std::vector<Nanos>& all = measurement.makespans;
  StepSpread spread = compute_spread(all);
  if (measurement.first_block == 0) return spread;
  const auto second = all.begin() + static_cast<std::ptrdiff_t>(measurement.first_block);
  spread.drift = std::abs(quantile(std::vector<Nanos>(all.begin(), second), 50) -
                          quantile(std::vector<Nanos>(second, all.end()), 50));
  return spread;
}

bool is_within_spread(const Comparison& comparison) {
  const StepSpread spread = compute_spread(comparison.measured);
  const Nanos predicted = comparison.predicted.report.makespan;
  return spread.min <= predicted && predicted <= spread.max;
}

bool are_apart(const StepSpread& left, const StepSpread& right) {
  const Nanos drift = std::max(left.drift, right.drift);
  const bool overlap = left.lower_quartile <= right.upper_quartile + drift &&
                       right.lower_quartile <= left.upper_quartile + drift;
  return !overlap && order(left.median, right.median) != 0;
}

OrderAgreement compute_order_agreement(const std::vector<Comparison>& comparisons) {
  OrderAgreement agreement;
  std::int64_t sum = 0;
  for (std::size_t left = 0; left < comparisons.size(); ++left)
    for (std::size_t right = left + 1; right < comparisons.size(); ++right) {
      const int predicted = order(comparisons[left].predicted.report.makespan,
                                  comparisons[right].predicted.report.makespan);
      if (predicted == 0) continue;
      ++agreement.pairs;
      const StepSpread one = compute_spread(comparisons[left].measured);
      const StepSpread other = compute_spread(comparisons[right].measured);
      if (!are_apart(one, other)) continue;
      ++agreement.counted;
      sum += predicted * order(one.median, other.median);
    }
  if (agreement.counted > 0)
    agreement.tau = static_cast<double>(sum) / static_cast<double>(agreement.counted);
  return agreement;
}

}  // namespace bubblescope::tools
