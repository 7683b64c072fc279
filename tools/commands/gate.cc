// Parses and evaluates conditions on reports.
#include "tools/commands/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

#include "sim/analysis/highest_peak.h"
#include "sim/ir/error.h"
#include "sim/ir/named.h"
#include "sim/ir/nearest_names.h"
#include "tools/flags/command_flags.h"
#include "tools/print.h"

namespace bubblescope::tools {

namespace {

/// "<=" and ">=" come before the signs with which they begin.
constexpr std::array<Named<Relation>, 6> kRelations{{{Relation::kAtMost, "<="},
                                                     {Relation::kAtLeast, ">="},
                                                     {Relation::kEqual, "=="},
                                                     {Relation::kUnequal, "!="},
                                                     {Relation::kBelow, "<"},
                                                     {Relation::kAbove, ">"}}};

bool holds(const Condition& condition, double value) {
  switch (condition.relation) {
    case Relation::kAtMost: return value <= condition.limit;
    case Relation::kAtLeast: return value >= condition.limit;
    case Relation::kEqual: return value == condition.limit;
    case Relation::kUnequal: return value != condition.limit;
    case Relation::kBelow: return value < condition.limit;
    case Relation::kAbove: return value > condition.limit;
  }
  return false;
}

Condition parse_condition(const std::string& text) {
  std::string packed = text;
  packed.erase(std::remove(packed.begin(), packed.end(), ' '), packed.end());
  for (const Named<Relation>& relation : kRelations) {
    const std::size_t at = packed.find(relation.name);
    if (at == std::string::npos || at == 0) continue;
    std::string limit = packed.substr(at + relation.name.size());
    const bool in_percent = limit.ends_with('%');
    if (in_percent) limit.pop_back();
    char* end = nullptr;
    const double value = std::strtod(limit.c_str(), &end);
    if (limit.empty() || *end != '\0' || !std::isfinite(value)) break;
    return {text, packed.substr(0, at), relation.choice, in_percent ? value / 100 : value,
            in_percent};
  }
  throw Error(
      "--fail-if: '" + text +
      "' is not a condition; write NAME, a comparison and a number, such as 'bubble_ratio>0.1' or "
      "'bubble_ratio>10%'");
}

/// The relative change of the metric before it.
constexpr std::string_view kChange = "_change";

/// The values that a metric can have.
struct Range {
  double min = -HUGE_VAL;
  double max = HUGE_VAL;
};

/// The measure of a metric, which says what a limit can be.
enum class Measure : std::uint8_t { kFraction, kFactor, kNanos, kSeconds, kBytes, kAmount };

struct MetricKind {
  Range range = {};
  Measure measure = Measure::kAmount;  ///< conditions may be in percent on fractions alone
};

/// Derives the measure from the unit in the name.
Measure measure_by_name(std::string_view metric) {
  if (metric.ends_with("_ns")) return Measure::kNanos;
  if (metric.ends_with("_s")) return Measure::kSeconds;
  return metric.ends_with("_bytes") ? Measure::kBytes : Measure::kAmount;
}

/// The kind of a metric that is no change.
MetricKind kind_of_value(std::string_view metric) {
  constexpr MetricKind kPart{{0, 1}, Measure::kFraction};
  constexpr MetricKind kRatio{{0, HUGE_VAL}, Measure::kFraction};
  static constexpr std::array<std::pair<std::string_view, MetricKind>, 9> kKinds{
      {{"bubble_ratio", kPart},
       {"bubble_span_rate", kPart},
       {"mfu", kPart},
       {"bubble_overhead", kRatio},
       {"replay_error", kRatio},
       {"gap", kRatio},
       {"slowdown", {{0, HUGE_VAL}, Measure::kFactor}},
       {"head_room_bytes", {{}, Measure::kBytes}},
       {"vs_best", {{-1, HUGE_VAL}, Measure::kFraction}}}};
  for (const auto& [name, kind] : kKinds)
    if (name == metric) return kind;
  if (metric.starts_with("error_")) return kRatio;
  if (metric.starts_with("op_start_")) return {{}, Measure::kFraction};
  return {{0, HUGE_VAL}, measure_by_name(metric)};
}

MetricKind kind_of(std::string_view metric) {
  if (!metric.ends_with(kChange)) return kind_of_value(metric);
  metric.remove_suffix(kChange.size());
  const bool is_bounded = kind_of_value(metric).range.min > -HUGE_VAL;
  return {is_bounded ? Range{-1, HUGE_VAL} : Range{}, Measure::kFraction};
}

/// The condition on another number, or with another limit: "vs_best>2%".
std::string rewrite(const Condition& condition, std::string_view metric, double limit,
                    std::string_view unit) {
  return fmt::format("{}{}{:.6g}{}", metric, name_of(kRelations, condition.relation), limit, unit);
}

/// Says how to write a condition that is in percent of a time, an amount or a factor.
std::string advise_without_percent(const Condition& condition, Measure measure,
                                   const Metrics& metrics) {
  const double percent = 100 * condition.limit;
  const std::string change = condition.metric + std::string(kChange);
  if (metrics.contains(change))
    return "write " + rewrite(condition, change, percent, "%") + " for its change";
  const std::string of_step = metrics.contains("vs_best") && measure == Measure::kNanos
                                  ? "write " + rewrite(condition, "vs_best", percent, "%") +
                                        " for what exceeds the best step, or "
                                  : "";
  switch (measure) {
    case Measure::kFraction:
    case Measure::kFactor: break;
    case Measure::kNanos: return of_step + "give nanoseconds";
    case Measure::kSeconds: return "give seconds";
    case Measure::kBytes: return "give bytes";
    case Measure::kAmount: return "give a number";
  }
  // A percentage below 100 is an excess over 1: 20 % means 1.2, and so does 120 %.
  const double limit = condition.limit < 1 ? 1 + condition.limit : condition.limit;
  return "1 is no slowdown at all: write " + rewrite(condition, condition.metric, limit, "");
}

std::string range_text(const Range& range, bool in_percent) {
  if (in_percent) {
    const std::string below = fmt::format("is never below {:g} %", 100 * range.min);
    return range.max == HUGE_VAL ? below : fmt::format("is from 0 % to {:g} %", 100 * range.max);
  }
  if (range.max == 1) return "is a fraction from 0 to 1";
  return range.min < 0 ? "is a fraction, never below -1" : "is never below 0";
}

/// Throws Error for a condition in percent on what is no fraction, and for one that always or never
/// holds: a gate with it would fail always or never.
void expect_possible(const Condition& condition, const Metrics& metrics) {
  const auto [range, measure] = kind_of(condition.metric);
  if (condition.in_percent && measure != Measure::kFraction)
    throw Error(fmt::format("--fail-if: '{}' compares {}, which is {}, with percent; {}",
                            condition.text, condition.metric,
                            measure == Measure::kFactor ? "a factor" : "no fraction",
                            advise_without_percent(condition, measure, metrics)));
  const double limit = condition.limit;
  const bool is_inside = limit >= range.min && limit <= range.max;
  const bool never_holds = (condition.relation == Relation::kAbove && limit == range.max) ||
                           (condition.relation == Relation::kBelow && limit == range.min);
  if (is_inside && !never_holds) return;
  // A limit outside the range gives the same answer for every value in the range, so one value
  // decides.
  const bool always_holds = !never_holds && holds(condition, std::max(range.min, 0.0));
  const bool may_be_percent = !condition.in_percent && range.max == 1 && limit > 1 && limit <= 100;
  throw Error(fmt::format(
      "--fail-if: '{}' {} holds, because {} {}{}", condition.text,
      always_holds ? "always" : "never", condition.metric, range_text(range, condition.in_percent),
      may_be_percent ? fmt::format("; for {:g} % write {:g}", limit, limit / 100) : ""));
}

/// Names that others give to numbers; the makespan of one step is all of its time.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOtherNames{
    {{"step", "step_ns"},
     {"step_ns", "makespan_ns"},
     {"memory", "peak_memory_bytes"},
     {"peak_memory", "peak_memory_bytes"}}};

/// The nearest metrics; of changes to the name of one, and of other numbers to any other name.
std::vector<std::string> nearest_metrics(std::string_view wanted,
                                         const std::vector<std::string>& names) {
  const std::string_view suffix = wanted.ends_with(kChange) ? kChange : "";
  std::string stem(wanted.substr(0, wanted.size() - suffix.size()));
  std::vector<std::string> stems;
  for (const std::string& name : names)
    if (name.ends_with(kChange) != suffix.empty())
      stems.push_back(name.substr(0, name.size() - suffix.size()));
  const auto is_known = [&](std::string_view name) {
    return std::find(stems.begin(), stems.end(), name) != stems.end();
  };
  for (const auto& [other, name] : kOtherNames)
    if (stem == other && !is_known(stem)) stem = name;
  std::vector<std::string> nearest = nearest_names(stem, stems);
  for (std::string& name : nearest) name += suffix;
  return nearest.empty() && suffix.empty() ? nearest_names(wanted, names) : nearest;
}

/// Writes whole numbers, such as nanoseconds and bytes, with all their digits.
std::string number_text(double value) {
  constexpr double kMaxExact = 9007199254740992;  // 2^53
  const bool is_whole = std::abs(value) <= kMaxExact && std::floor(value) == value;
  return is_whole ? fmt::format("{:.0f}", value) : fmt::format("{:g}", value);
}

}  // namespace

Metrics collect_metrics(const BubbleReport& report) {
  const HighestPeak peak = find_highest_peak(report);
  // Names are known before it is known whether a trace's numbers can be trusted.
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const Bubble bubble = report.bubble.value_or(Bubble{kUnknown, kUnknown, kUnknown, 0});
  Metrics metrics{{"makespan_ns", static_cast<double>(report.makespan)},
                  {"max_span_ns", static_cast<double>(report.max_span)},
                  {"ideal_ns", static_cast<double>(report.ideal)},
                  {"lower_bound_ns", static_cast<double>(report.lower_bound)},
                  {"bubble_ratio", bubble.ratio},
                  {"bubble_overhead", bubble.overhead},
                  {"bubble_span_rate", bubble.span_rate},
                  {"bubble_time_ns", static_cast<double>(bubble.time)},
                  {"peak_activations", peak.activations}};
  if (peak.bytes) metrics["peak_memory_bytes"] = static_cast<double>(*peak.bytes);
  if (report.period) metrics["period_ns"] = static_cast<double>(*report.period);
  return metrics;
}

void add_gate_option(CommandFlags& app, std::vector<std::string>& conditions) {
  app.add_option("--fail-if", conditions, "exit 1 if this holds, e.g. 'bubble_ratio>0.1'")
      ->type_name("CONDITION");
}

std::vector<Condition> parse_conditions(const std::vector<std::string>& texts) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) conditions.push_back(parse_condition(text));
  return conditions;
}

void expect_known(const std::vector<Condition>& conditions, const Metrics& metrics) {
  for (const Condition& condition : conditions) {
    if (metrics.contains(condition.metric)) {
      expect_possible(condition, metrics);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    throw Error(fmt::format("--fail-if: no number is called '{}'{} (there are {})",
                            condition.metric, suggestion(nearest_metrics(condition.metric, names)),
                            fmt::join(names, ", ")));
  }
}

bool report_failures(const std::vector<Condition>& conditions, const Metrics& metrics,
                     const std::string& job) {
  expect_known(conditions, metrics);
  bool failed = false;
  for (const Condition& condition : conditions) {
    const double value = metrics.at(condition.metric);
    if (!holds(condition, value)) continue;
    print_message("bubblescope: {}{}failed: {} ({} is {})\n", job, job.empty() ? "" : ": ",
                  condition.text, condition.metric, number_text(value));
    failed = true;
  }
  return failed;
}

}  // namespace bubblescope::tools
