// Compares predictions with measurements.
#include "tools/commands/compare_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/ir/bytes_text.h"
#include "sim/ir/quantile.h"
#include "traces/reports/report_json.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

constexpr double kMinDivergence = 0.01;
constexpr double kEqual = 0.001;

double ratio(Nanos part, Nanos whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// The error of the fullest rank's peak: in bytes if both reports have them, otherwise in chunks.
double peak_error(const BubbleReport& predicted, const BubbleReport& measured) {
  double expected = 0;
  double held = 0;
  const bool in_bytes = predicted.ranks[0].peak.bytes && measured.ranks[0].peak.bytes;
  const auto size = [&](const RankReport& rank) {
    return in_bytes ? static_cast<double>(*rank.peak.bytes) : rank.peak.chunks;
  };
  for (const RankReport& rank : predicted.ranks) expected = std::max(expected, size(rank));
  for (const RankReport& rank : measured.ranks) held = std::max(held, size(rank));
  return expected == 0 ? 0 : (held - expected) / expected;
}

/// The predicted and the measured pool of the fullest rank.
struct FullestPools {
  Bytes predicted = 0;
  exec::PoolUse measured;
};

FullestPools fullest_pools(const Comparison& comparison) {
  FullestPools fullest;
  for (const Bytes predicted : comparison.predicted_pools)
    fullest.predicted = std::max(fullest.predicted, predicted);
  for (const exec::PoolUse& pool : comparison.measured.pools) {
    fullest.measured.peak = std::max(fullest.measured.peak, pool.peak);
    fullest.measured.reserved = std::max(fullest.measured.reserved, pool.reserved);
  }
  return fullest;
}

/// The error of the pools' peak; empty without pools.
std::optional<double> pool_error(const Comparison& comparison) {
  if (comparison.measured.pools.empty()) return std::nullopt;
  const FullestPools pools = fullest_pools(comparison);
  return ratio(pools.measured.peak - pools.predicted, pools.predicted);
}

/// "pool of the fullest rank: 12.1 MiB predicted, 12.1 MiB measured (+0.00 %), 13.0 MiB reserved".
std::string describe_pools(const Comparison& comparison) {
  const FullestPools pools = fullest_pools(comparison);
  return fmt::format("pool of the fullest rank: {} predicted, {} measured ({:+.2f} %), {} reserved",
                     format_bytes(pools.predicted), format_bytes(pools.measured.peak),
                     100 * comparison.error.peak_pool.value_or(0),
                     format_bytes(pools.measured.reserved));
}

PredictionError find_error(const TimedStep& predicted, const TimedStep& measured) {
  const TimelineDifference difference =
      compare_timelines(predicted.program, predicted.timeline, measured.program, measured.timeline);
  const Nanos step = predicted.report.makespan;
  PredictionError error;
  error.makespan = ratio(measured.report.makespan - step, step);
  error.bubble_ratio = measured.report.bubble.ratio - predicted.report.bubble.ratio;
  error.op_start_p50 = ratio(compute_start_shift_quantile(difference, 0.50), step);
  error.op_start_p95 = ratio(compute_start_shift_quantile(difference, 0.95), step);
  error.peak_memory = peak_error(predicted.report, measured.report);
  error.first_divergence = find_first_divergence(
      difference, static_cast<Nanos>(kMinDivergence * static_cast<double>(step)));
  return error;
}

/// The sign of b - a; 0 where they are equal within a thousandth.
int order(Nanos a, Nanos b) {
  const double apart = static_cast<double>(b - a);
  if (std::abs(apart) <= kEqual * static_cast<double>(std::max(a, b))) return 0;
  return apart > 0 ? 1 : -1;
}

std::string describe(const std::optional<OpShift>& first_divergence) {
  if (!first_divergence) return "none above 1 % of the step";
  return fmt::format("{} on rank {}: starts {:+.3g} ms off, takes {:+.3g} ms more",
                     to_string(first_divergence->op), first_divergence->rank,
                     static_cast<double>(first_divergence->start_shift) / 1e6,
                     static_cast<double>(first_divergence->duration_shift) / 1e6);
}

std::string describe(const BubbleReport& report) {
  return fmt::format("{:>12.6g}{:>9.2f}", static_cast<double>(report.makespan) / 1e6,
                     100 * report.bubble.ratio);
}

PredictionError largest(const std::vector<Comparison>& comparisons) {
  PredictionError worst;
  for (const Comparison& comparison : comparisons) {
    const PredictionError& error = comparison.error;
    worst.makespan = std::max(worst.makespan, std::abs(error.makespan));
    worst.bubble_ratio = std::max(worst.bubble_ratio, std::abs(error.bubble_ratio));
    worst.op_start_p50 = std::max(worst.op_start_p50, error.op_start_p50);
    worst.op_start_p95 = std::max(worst.op_start_p95, error.op_start_p95);
    worst.peak_memory = std::max(worst.peak_memory, std::abs(error.peak_memory));
    if (error.peak_pool)
      worst.peak_pool = std::max(worst.peak_pool.value_or(0), std::abs(*error.peak_pool));
  }
  return worst;
}

std::string error_json(const PredictionError& error) {
  return fmt::format(
      "\"error\":{{\"makespan\":{},\"bubble_ratio\":{},\"op_start_p50\":{},\"op_start_p95\":{},"
      "\"peak_memory\":{}{}}}",
      std::abs(error.makespan), std::abs(error.bubble_ratio), error.op_start_p50,
      error.op_start_p95, std::abs(error.peak_memory),
      error.peak_pool ? fmt::format(",\"peak_pool\":{}", std::abs(*error.peak_pool)) : "");
}

/// Writes the predicted pools; empty without pools.
std::string pools_json(const std::vector<Bytes>& pools) {
  if (pools.empty()) return "";
  return fmt::format(",\"predicted_pools\":{{\"peak_bytes\":[{}]}}", fmt::join(pools, ","));
}

/// With its old name, "parting", as well.
std::string write_divergence_json(const std::optional<OpShift>& first_divergence) {
  const std::string value =
      first_divergence
          ? fmt::format("{{\"rank\":{},\"op\":{},\"start_shift_ns\":{},\"duration_shift_ns\":{}}}",
                        first_divergence->rank,
                        traces::json_string(to_string(first_divergence->op)),
                        first_divergence->start_shift, first_divergence->duration_shift)
          : "null";
  return "\"first_divergence\":" + value + ",\"parting\":" + value;
}

std::string report_json(const TimedStep& step) {
  return traces::write_report_json(step.report, step.program, step.timeline);
}

std::string spread_json(const StepSpread& spread) {
  return fmt::format(
      "\"step_spread\":{{\"min_ns\":{},\"lower_quartile_ns\":{},\"median_ns\":{},"
      "\"upper_quartile_ns\":{},\"max_ns\":{},\"drift_ns\":{}}}",
      spread.min, spread.lower_quartile, spread.median, spread.upper_quartile, spread.max,
      spread.drift);
}

std::string order_text(const OrderAgreement& agreement) {
  if (agreement.pairs == 0) return {};
  if (!agreement.tau)
    return fmt::format(
        "order of the schedules: unknown, none of {} pairs is further apart than its noise\n",
        agreement.pairs);
  return fmt::format(
      "order of the schedules: Kendall's tau {:.2f} over {} of {} pairs{}\n", *agreement.tau,
      agreement.counted, agreement.pairs,
      agreement.counted < agreement.pairs ? "; the others are within the steps' noise" : "");
}

/// How many predictions the measurements cannot tell from the truth, and how far the machine
/// drifted.
std::string within_text(const std::vector<Comparison>& comparisons) {
  std::size_t within = 0;
  double drift = 0;
  for (const Comparison& comparison : comparisons) {
    const StepSpread spread = compute_spread(comparison.measured);
    within += is_within_spread(comparison) ? 1 : 0;
    drift = std::max(drift, ratio(spread.drift, spread.median));
  }
  return fmt::format(
      "predicted steps within the spread of the measured ones: {} of {}; between two blocks of "
      "steps the median moved by up to {:.1f} %\n",
      within, comparisons.size(), 100 * drift);
}

std::string match_json(const std::vector<Comparison>& comparisons) {
  const bool any = std::any_of(comparisons.begin(), comparisons.end(), [](const Comparison& each) {
    return each.measured.verification.has_value();
  });
  return !any ? "null" : gradients_match(comparisons) ? "true" : "false";
}

/// The measured report with its prediction and its error.
std::string comparison_json(const Comparison& comparison) {
  const std::string members =
      write_json_members(comparison.measured) + ",\n " +
      spread_json(compute_spread(comparison.measured)) +
      (is_within_spread(comparison) ? ",\"within_spread\":true," : ",\"within_spread\":false,") +
      error_json(comparison.error) + "," +
      write_divergence_json(comparison.error.first_divergence) +
      pools_json(comparison.predicted_pools) +
      ",\n \"predicted\":" + report_json(comparison.predicted);
  return append_members(report_json(comparison.measured.step), members);
}

}  // namespace

Comparison judge_prediction(const std::string& label, TimedStep predicted, Measurement measured,
                            const RunOptions& run) {
  Comparison comparison{label, std::move(predicted), std::move(measured)};
  const TimedStep& step = comparison.predicted;
  comparison.error = find_error(step, comparison.measured.step);
  if (!comparison.measured.pools.empty())
    comparison.predicted_pools = exec::predict_pool_bytes(
        {step.schedule, step.program, step.timeline}, run.training, run.device);
  comparison.error.peak_pool = pool_error(comparison);
  return comparison;
}

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

std::string describe_noise_problem(const std::vector<Comparison>& comparisons) {
  constexpr double kMinSpread = 0.1;
  StepSpread widest;
  std::string label;
  for (const Comparison& comparison : comparisons) {
    const StepSpread spread = compute_spread(comparison.measured);
    if (!label.empty() && spread.relative() <= widest.relative()) continue;
    widest = spread;
    label = comparison.label;
  }
  const OrderAgreement agreement = compute_order_agreement(comparisons);
  if (widest.relative() <= kMinSpread && agreement.counted == agreement.pairs) return {};
  std::string text = fmt::format("noisy: steps of {} took {} to {}", label,
                                 traces::format_time(widest.min), traces::format_time(widest.max));
  if (agreement.counted < agreement.pairs)
    text += fmt::format(", and {} of {} pairs of schedules cannot be told apart",
                        agreement.pairs - agreement.counted, agreement.pairs);
  return text +
         "; take the errors below as no finer than that, or measure on a quiet machine with "
         "more --steps\n";
}

std::string write_comparison_text(const std::vector<Comparison>& comparisons) {
  std::size_t width = 16;
  for (const Comparison& comparison : comparisons)
    width = std::max(width, comparison.label.size() + 2);
  std::string text = describe_noise_problem(comparisons);
  text += fmt::format("{:<{}}{:<10}{:>12}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "schedule", width, "",
                      "makespan ms", "bubble %", "error %", "p50 %", "p95 %", "peak %");
  text.insert(text.size() - 1, "  steps took");
  std::string divergences;
  for (const Comparison& comparison : comparisons) {
    const PredictionError& error = comparison.error;
    const StepSpread spread = compute_spread(comparison.measured);
    text += fmt::format("{:<{}}predicted {}\n", comparison.label, width,
                        describe(comparison.predicted.report));
    text += fmt::format("{:<{}}measured  {}{:>+9.2f}{:>9.2f}{:>9.2f}{:>+9.2f}  {} to {}\n", "",
                        width, describe(comparison.measured.step.report), 100 * error.makespan,
                        100 * error.op_start_p50, 100 * error.op_start_p95, 100 * error.peak_memory,
                        traces::format_time(spread.min), traces::format_time(spread.max));
    divergences += fmt::format("{:<{}}first divergence: {}\n", comparison.label, width,
                               describe(error.first_divergence));
    if (comparison.measured.verification)
      divergences +=
          fmt::format("{:<{}}{}\n", "", width, to_string(*comparison.measured.verification));
    if (error.peak_pool)
      divergences += fmt::format("{:<{}}{}\n", "", width, describe_pools(comparison));
  }
  text += "\n" + divergences;
  text += within_text(comparisons);
  text += order_text(compute_order_agreement(comparisons));
  const Measurement& first = comparisons[0].measured;
  return text +
         fmt::format("measured on {}, --work {}, {}\n", first.backend, first.work, first.device);
}

std::string write_comparison_csv(const std::vector<Comparison>& comparisons) {
  std::string text =
      "schedule,predicted_ns,measured_ns,predicted_bubble_ratio,measured_bubble_ratio,"
      "error_makespan,error_bubble_ratio,error_op_start_p50,error_op_start_p95,"
      "error_peak_memory,gradients_match,pp,vpp,microbatches,measured_min_ns,measured_max_ns\n";
  for (const Comparison& comparison : comparisons) {
    const BubbleReport& predicted = comparison.predicted.report;
    const BubbleReport& measured = comparison.measured.step.report;
    const PredictionError& error = comparison.error;
    const StepSpread spread = compute_spread(comparison.measured);
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", comparison.label,
                        predicted.makespan, measured.makespan, predicted.bubble.ratio,
                        measured.bubble.ratio, error.makespan, error.bubble_ratio,
                        error.op_start_p50, error.op_start_p95, error.peak_memory,
                        match_json({comparison}), predicted.shape.ranks, predicted.shape.chunks,
                        predicted.shape.microbatches, spread.min, spread.max);
  }
  return text;
}

std::string write_result_line(const Comparison& comparison) {
  std::string line = comparison_json(comparison);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

std::string write_comparison_json(const std::vector<Comparison>& comparisons) {
  std::string reports;
  for (const Comparison& comparison : comparisons)
    reports += (reports.empty() ? "" : ",\n") + comparison_json(comparison);
  const OrderAgreement agreement = compute_order_agreement(comparisons);
  const std::string warning = describe_noise_problem(comparisons);
  return fmt::format(
      "{{\"format\":\"bubblescope-comparison/1\",\"work\":{},\"device\":{},"
      "\"gradients_match\":{},{},\"kendall_tau\":{},\"order_pairs\":{{\"counted\":{},\"of\":{}}},"
      "\"noise\":{},\n\"reports\":[\n{}]}}\n",
      traces::json_string(comparisons[0].measured.work),
      traces::json_string(comparisons[0].measured.device), match_json(comparisons),
      error_json(largest(comparisons)), agreement.tau ? fmt::format("{}", *agreement.tau) : "null",
      agreement.counted, agreement.pairs,
      warning.empty()
          ? "null"
          : traces::json_string(std::string_view(warning).substr(0, warning.size() - 1)),
      reports);
}

bool gradients_match(const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& comparison) {
    return !comparison.measured.verification || comparison.measured.verification->matches;
  });
}

}  // namespace bubblescope::tools
