// Orders schedules by their measured steps.
#include "tools/commands/measured_spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "sim/ir/counted.h"
#include "sim/ir/quantile.h"
#include "tools/commands/compare_table.h"
#include "tools/commands/vs_best.h"
#include "traces/text/time_axis.h"

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

std::string describe_noise(const StepSpread& spread, std::int32_t ranks, std::int32_t cores) {
  const bool take_turns = ranks > cores;
  if (spread.relative() <= kMinNoise && !take_turns) return {};
  std::string text = fmt::format("noisy: steps took {} to {}", traces::format_time(spread.min),
                                 traces::format_time(spread.max));
  if (take_turns)
    text += fmt::format(", and {}, of which each needs a core, took turns on {}",
                        counted(ranks, "rank"), cores);
  return text +
         "; take the times below as no finer than that, or measure on a quiet machine with a core "
         "for every rank and more --steps\n";
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

std::string describe_spreads(const std::vector<Comparison>& comparisons) {
  std::size_t within = 0;
  double drift = 0;
  for (const Comparison& comparison : comparisons) {
    const StepSpread spread = compute_spread(comparison.measured);
    within += is_within_spread(comparison) ? 1 : 0;
    drift = std::max(drift, fraction(spread.drift, spread.median));
  }
  return fmt::format(
      "predicted steps within the spread of the measured ones: {} of {}; between two blocks of "
      "steps the median moved by up to {:.1f} %\n",
      within, comparisons.size(), 100 * drift);
}

std::vector<double> excesses_over_best(const std::vector<Comparison>& comparisons) {
  std::vector<RankedStep> steps;
  for (const Comparison& comparison : comparisons) {
    const TimedStep& step = comparison.measured.step;
    steps.push_back({whole_step(step.report), step.schedule->shape.microbatches,
                     trains(*step.schedule), comparison.over_limits});
  }
  return find_excesses(steps);
}

}  // namespace bubblescope::tools
