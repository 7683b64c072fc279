// Compares predictions with measurements.
#include "tools/commands/compare_measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "exec/gpu/host/device_memory.h"
#include "sim/ir/bytes_text.h"
#include "sim/ir/counted.h"
#include "tools/commands/measured_spread.h"
#include "tools/commands/measurement_json.h"
#include "tools/commands/vs_best.h"
#include "tools/flags/field_names.h"
#include "traces/reports/report_json.h"
#include "traces/text/fit_table.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

constexpr double kMinDivergence = 0.01;

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

/// Returns the error of the pools' peak; empty without pools.
std::optional<double> pool_error(const Comparison& comparison) {
  if (comparison.measured.pools.empty()) return std::nullopt;
  const FullestPools pools = fullest_pools(comparison);
  return fraction(pools.measured.peak - pools.predicted, pools.predicted);
}

/// Returns a text such as "pool of the fullest rank: 12.1 MiB predicted, 12.1 MiB measured (+0.00
/// %), 13.0 MiB reserved".
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
  error.makespan = fraction(measured.report.makespan - step, step);
  error.bubble_ratio = measured.report.bubble->ratio - predicted.report.bubble->ratio;
  error.op_start_p50 = fraction(compute_start_shift_quantile(difference, 50), step);
  error.op_start_p95 = fraction(compute_start_shift_quantile(difference, 95), step);
  error.peak_memory = peak_error(predicted.report, measured.report);
  error.first_divergence = find_first_divergence(
      difference, static_cast<Nanos>(kMinDivergence * static_cast<double>(step)));
  return error;
}

/// Returns a text such as "0.25 ms later".
std::string shift_text(Nanos shift, const char* above, const char* below) {
  return fmt::format("{:.3g} ms {}", std::abs(static_cast<double>(shift)) / 1e6,
                     shift < 0 ? below : above);
}

std::string describe(const std::optional<OpShift>& first_divergence) {
  if (!first_divergence) return "none above 1 % of the step";
  return fmt::format("{} on rank {}: starts {}, takes {}", to_string(first_divergence->op),
                     first_divergence->rank,
                     shift_text(first_divergence->start_shift, "later", "earlier"),
                     shift_text(first_divergence->duration_shift, "longer", "less"));
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

void write_error(traces::JsonWriter& json, const PredictionError& error) {
  json.key("error").begin_object().key("makespan").shortest(std::abs(error.makespan));
  json.key("bubble_ratio").shortest(std::abs(error.bubble_ratio));
  json.key("op_start_p50").shortest(error.op_start_p50);
  json.key("op_start_p95").shortest(error.op_start_p95);
  json.key("peak_memory").shortest(std::abs(error.peak_memory));
  if (error.peak_pool) json.key("peak_pool").shortest(std::abs(*error.peak_pool));
  json.end_object();
}

/// With its old name, "parting", as well.
void write_divergence(traces::JsonWriter& json, const std::optional<OpShift>& first_divergence) {
  for (const char* key : {"first_divergence", "parting"}) {
    json.key(key);
    if (!first_divergence) {
      json.null();
      continue;
    }
    json.begin_object().member("rank", first_divergence->rank);
    json.member("op", to_string(first_divergence->op));
    json.member("start_shift_ns", first_divergence->start_shift);
    json.member("duration_shift_ns", first_divergence->duration_shift).end_object();
  }
}

std::string report_json(const TimedStep& step, const traces::WriteMembers& write_more = {}) {
  return traces::write_report_json(step.report, step.program, step.timeline, write_more);
}

void write_spread(traces::JsonWriter& json, const StepSpread& spread) {
  json.key("step_spread").begin_object().member("min_ns", spread.min);
  json.member("lower_quartile_ns", spread.lower_quartile).member("median_ns", spread.median);
  json.member("upper_quartile_ns", spread.upper_quartile).member("max_ns", spread.max);
  json.member("drift_ns", spread.drift).end_object();
}

bool has_clocks(const Comparison& comparison) {
  return comparison.costs_sm_mhz && comparison.measured_sm_mhz;
}

/// Writes the clock of the costs, and the one to which the prediction was scaled.
void write_clocks(traces::JsonWriter& json, const Comparison& comparison) {
  if (!has_clocks(comparison)) return;
  json.key("sm_mhz").begin_object().key("costs").shortest(*comparison.costs_sm_mhz);
  json.key("measured").shortest(*comparison.measured_sm_mhz).end_object();
}

/// Writes what a measured report has beside its own numbers.
void write_comparison(traces::JsonWriter& json, const Comparison& comparison) {
  write_measurement_json(json.line(1), comparison.measured);
  write_spread(json.line(1), compute_spread(comparison.measured));
  json.member("within_spread", is_within_spread(comparison));
  write_clocks(json, comparison);
  write_error(json, comparison.error);
  write_divergence(json, comparison.error.first_divergence);
  if (!comparison.predicted_pools.empty())
    json.key("predicted_pools")
        .begin_object()
        .array("peak_bytes", comparison.predicted_pools)
        .end_object();
  json.line(1).key("predicted").raw(report_json(comparison.predicted));
}

/// `excess` over the best one; nullopt where that is not known yet.
std::string comparison_json(const Comparison& comparison, std::optional<double> excess) {
  return report_json(comparison.measured.step, [&](traces::JsonWriter& more) {
    write_comparison(more, comparison);
    if (!excess) return;
    more.line(1).key("vs_best");
    std::isnan(*excess) ? more.null() : more.shortest(*excess);
  });
}

std::string order_text(const OrderAgreement& agreement) {
  if (agreement.pairs == 0) return {};
  if (!agreement.tau)
    return fmt::format(
        "order of the schedules: unknown, none of {} is further apart than its noise\n",
        counted(agreement.pairs, "pair"));
  return fmt::format(
      "order of the schedules: Kendall's tau {:.2f} over {} of {}{}\n", *agreement.tau,
      agreement.counted, counted(agreement.pairs, "pair"),
      agreement.counted < agreement.pairs ? "; the others are within the steps' noise" : "");
}

/// "predictions are scaled from the 1980 MHz of the costs to the 1755 to 1920 MHz of the steps";
/// empty where clocks are not known.
std::string clocks_text(const std::vector<Comparison>& comparisons) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const Comparison& comparison : comparisons) {
    if (!has_clocks(comparison)) return {};
    low = std::min(low, *comparison.measured_sm_mhz);
    high = std::max(high, *comparison.measured_sm_mhz);
  }
  const std::string lowest = fmt::format("{:.0f}", low);
  const std::string highest = fmt::format("{:.0f}", high);
  return fmt::format(
      "predictions are scaled from the {:.0f} MHz of the costs to the {} MHz of the measured "
      "steps\n",
      *comparisons[0].costs_sm_mhz, lowest == highest ? lowest : lowest + " to " + highest);
}

/// Empty if nothing was verified.
std::optional<bool> find_match(const std::vector<Comparison>& comparisons) {
  const bool any = std::any_of(comparisons.begin(), comparisons.end(), [](const Comparison& each) {
    return each.measured.verification.has_value();
  });
  if (!any) return std::nullopt;
  return gradients_match(comparisons);
}

/// Returns a row with the prediction and one with the measurement of each schedule.
traces::FittedTable draw_errors(const std::vector<Comparison>& comparisons,
                                std::optional<int> width) {
  std::vector<traces::TableColumn> columns{{"schedule", {}, true, traces::kAlwaysShown},
                                           {"", {}, true, traces::kAlwaysShown},
                                           {"makespan ms", {}, false, traces::kAlwaysShown},
                                           {"vs best %", {}, false, 45},
                                           {"bubble %", {}, false, 80},
                                           {"error %", {}, false, 90},
                                           {"p50 %", {}, false, 40},
                                           {"p95 %", {}, false, 50},
                                           {"peak %", {}, false, 60},
                                           {"steps took", {}, true, 70}};
  const auto add = [&columns](const std::vector<std::string>& cells) {
    for (std::size_t at = 0; at < columns.size(); ++at)
      columns[at].cells.push_back(at < cells.size() ? cells[at] : "");
  };
  const auto step = [](const BubbleReport& report) {
    return fmt::format("{:.6g}", static_cast<double>(report.makespan) / 1e6);
  };
  const auto percent = [](double ratio) { return fmt::format("{:.2f}", 100 * ratio); };
  const auto change = [](double ratio) { return fmt::format("{:+.2f}", 100 * ratio); };
  const auto above = [](double excess) -> std::string {
    return std::isnan(excess) ? "-" : fmt::format("{:+.2f}", 100 * excess);
  };
  const std::vector<double> excesses = excesses_over_best(comparisons);
  for (std::size_t at = 0; at < comparisons.size(); ++at) {
    const Comparison& comparison = comparisons[at];
    const PredictionError& error = comparison.error;
    const BubbleReport& predicted = comparison.predicted.report;
    const BubbleReport& measured = comparison.measured.step.report;
    const StepSpread spread = compute_spread(comparison.measured);
    add({comparison.label, "predicted", step(predicted), "", percent(predicted.bubble->ratio)});
    add({"", "measured", step(measured), above(excesses[at]), percent(measured.bubble->ratio),
         change(error.makespan), percent(error.op_start_p50), percent(error.op_start_p95),
         change(error.peak_memory),
         fmt::format("{} to {}", traces::format_time(spread.min),
                     traces::format_time(spread.max))});
  }
  return traces::draw_table(columns, width);
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

std::string describe_noise_problem(const std::vector<Comparison>& comparisons) {
  StepSpread widest;
  std::string label;
  for (const Comparison& comparison : comparisons) {
    const StepSpread spread = compute_spread(comparison.measured);
    if (!label.empty() && spread.relative() <= widest.relative()) continue;
    widest = spread;
    label = comparison.label;
  }
  const OrderAgreement agreement = compute_order_agreement(comparisons);
  if (widest.relative() <= kMinNoise && agreement.counted == agreement.pairs) return {};
  std::string text = fmt::format("noisy: steps of {} took {} to {}", label,
                                 traces::format_time(widest.min), traces::format_time(widest.max));
  if (agreement.counted < agreement.pairs)
    text += fmt::format(", and {} of {} of schedules cannot be told apart",
                        agreement.pairs - agreement.counted, counted(agreement.pairs, "pair"));
  return text +
         "; take the errors below as no finer than that, or measure on a quiet machine with "
         "more --steps\n";
}

std::string write_comparison_text(const std::vector<Comparison>& comparisons,
                                  std::optional<int> columns) {
  std::size_t width = 16;
  for (const Comparison& comparison : comparisons)
    width = std::max(width, comparison.label.size() + 2);
  const traces::FittedTable table = draw_errors(comparisons, columns);
  std::string text = describe_noise_problem(comparisons) + table.text +
                     name_flags(traces::describe_hidden(table.hidden));
  std::string divergences;
  for (const Comparison& comparison : comparisons) {
    const PredictionError& error = comparison.error;
    divergences += fmt::format("{:<{}}first divergence: {}\n", comparison.label, width,
                               describe(error.first_divergence));
    if (comparison.measured.verification)
      divergences +=
          fmt::format("{:<{}}{}\n", "", width, to_string(*comparison.measured.verification));
    if (error.peak_pool)
      divergences += fmt::format("{:<{}}{}\n", "", width, describe_pools(comparison));
  }
  text += "\n" + divergences;
  text += describe_spreads(comparisons) + clocks_text(comparisons);
  text += order_text(compute_order_agreement(comparisons));
  const Measurement& first = comparisons[0].measured;
  return text +
         fmt::format("measured on {}, --work {}, {}\n", first.backend, first.work, first.device);
}

std::string write_comparison_csv(const std::vector<Comparison>& comparisons) {
  std::string text =
      "schedule,predicted_ns,measured_ns,predicted_bubble_ratio,measured_bubble_ratio,"
      "error_makespan,error_bubble_ratio,error_op_start_p50,error_op_start_p95,"
      "error_peak_memory,gradients_match,pp,vpp,microbatches,measured_min_ns,measured_max_ns,"
      "vs_best\n";
  const std::vector<double> excesses = excesses_over_best(comparisons);
  for (std::size_t at = 0; at < comparisons.size(); ++at) {
    const Comparison& comparison = comparisons[at];
    const BubbleReport& predicted = comparison.predicted.report;
    const BubbleReport& measured = comparison.measured.step.report;
    const PredictionError& error = comparison.error;
    const StepSpread spread = compute_spread(comparison.measured);
    const std::optional<bool> match = find_match({comparison});
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", comparison.label,
                        predicted.makespan, measured.makespan, predicted.bubble->ratio,
                        measured.bubble->ratio, error.makespan, error.bubble_ratio,
                        error.op_start_p50, error.op_start_p95, error.peak_memory,
                        match ? fmt::format("{}", *match) : "null", predicted.shape.ranks,
                        predicted.shape.chunks, predicted.shape.microbatches, spread.min,
                        spread.max, excess_csv(excesses[at]));
  }
  return text;
}

std::string write_result_line(const Comparison& comparison) {
  std::string line = comparison_json(comparison, {});
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line + "\n";
}

std::string write_comparison_json(const std::vector<Comparison>& comparisons) {
  const OrderAgreement agreement = compute_order_agreement(comparisons);
  std::string warning = describe_noise_problem(comparisons);
  if (!warning.empty()) warning.pop_back();  // the end of its line
  std::string text;
  traces::JsonWriter json(text);
  json.begin_object().member("format", "bubblescope-comparison/1");
  json.member("work", comparisons[0].measured.work);
  json.member("device", comparisons[0].measured.device);
  json.member_or_null("gradients_match", find_match(comparisons));
  write_error(json, largest(comparisons));
  json.key("kendall_tau");
  agreement.tau ? json.shortest(*agreement.tau) : json.null();
  json.key("order_pairs").begin_object().member("counted", agreement.counted);
  json.member("of", agreement.pairs).end_object().key("noise");
  warning.empty() ? json.null() : json.value(warning);
  json.line(0).key("reports").begin_array();
  const std::vector<double> excesses = excesses_over_best(comparisons);
  for (std::size_t at = 0; at < comparisons.size(); ++at)
    json.line(0).raw(comparison_json(comparisons[at], excesses[at]));
  json.end_array().end_object();
  return text + '\n';
}

bool gradients_match(const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(), [](const Comparison& comparison) {
    return !comparison.measured.verification || comparison.measured.verification->matches;
  });
}

}  // namespace bubblescope::tools
