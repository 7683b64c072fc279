// Parses and evaluates conditions on reports.
#include "tools/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "tools/flags/command_flags.h"
#include "tools/say.h"

namespace bubblescope {

namespace {

constexpr std::array<const char*, 6> kComparisons{"<=", ">=", "==", "!=", "<", ">"};

bool holds(const Condition& condition, double value) {
  if (condition.comparison == "<") return value < condition.limit;
  if (condition.comparison == "<=") return value <= condition.limit;
  if (condition.comparison == ">") return value > condition.limit;
  if (condition.comparison == ">=") return value >= condition.limit;
  if (condition.comparison == "==") return value == condition.limit;
  return value != condition.limit;
}

Condition parse_condition(const std::string& text) {
  std::string packed = text;
  packed.erase(std::remove(packed.begin(), packed.end(), ' '), packed.end());
  for (const char* comparison : kComparisons) {
    const std::size_t at = packed.find(comparison);
    if (at == std::string::npos || at == 0) continue;
    const std::string limit = packed.substr(at + std::string(comparison).size());
    char* end = nullptr;
    const double value = std::strtod(limit.c_str(), &end);
    if (limit.empty() || *end != '\0' || !std::isfinite(value)) break;
    return {text, packed.substr(0, at), comparison, value};
  }
  throw Error(
      "--fail-if: '" + text +
      "' is no condition; write NAME, a comparison and a number, such as 'bubble_ratio>0.1'");
}

}  // namespace

Metrics metrics_of(const BubbleReport& report) {
  double peak = 0;
  std::optional<Bytes> memory;
  for (const RankReport& rank : report.ranks) {
    peak = std::max(peak, rank.peak.activations);
    memory = std::max(memory, rank.peak.bytes);
  }
  Metrics metrics{{"makespan_ns", static_cast<double>(report.makespan)},
                  {"max_span_ns", static_cast<double>(report.max_span)},
                  {"ideal_ns", static_cast<double>(report.ideal)},
                  {"lower_bound_ns", static_cast<double>(report.lower_bound)},
                  {"bubble_ratio", report.bubble.ratio},
                  {"bubble_overhead", report.bubble.overhead},
                  {"bubble_span_rate", report.bubble.span_rate},
                  {"bubble_time_ns", static_cast<double>(report.bubble.time)},
                  {"peak_activations", peak}};
  if (memory) metrics["peak_memory_bytes"] = static_cast<double>(*memory);
  return metrics;
}

void add_gate_option(CommandFlags& app, std::vector<std::string>& conditions) {
  app.add_option("--fail-if", conditions, "exit 1 if this holds, e.g. 'bubble_ratio>0.1'")
      ->type_name("CONDITION")
      ->repeated();
}

std::vector<Condition> parse_conditions(const std::vector<std::string>& texts) {
  std::vector<Condition> conditions;
  for (const std::string& text : texts) conditions.push_back(parse_condition(text));
  return conditions;
}

void expect_known(const std::vector<Condition>& conditions, const Metrics& metrics) {
  for (const Condition& condition : conditions) {
    if (metrics.contains(condition.metric)) continue;
    std::vector<std::string> names;
    for (const auto& [name, value] : metrics) names.push_back(name);
    const std::string nearest = nearest_name(condition.metric, names);
    throw Error(fmt::format("--fail-if: no number is called '{}'{}; there are {}", condition.metric,
                            suggestion(nearest), fmt::join(names, ", ")));
  }
}

bool report_failures(const std::vector<Condition>& conditions, const Metrics& metrics) {
  expect_known(conditions, metrics);
  bool failed = false;
  for (const Condition& condition : conditions) {
    const double value = metrics.at(condition.metric);
    if (!holds(condition, value)) continue;
    say("bubblescope: failed: {} ({} is {:g})\n", condition.text, condition.metric, value);
    failed = true;
  }
  return failed;
}

}  // namespace bubblescope
