// A gate is a condition on a value of the report. If it holds, the command exits with status 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// The values that a condition can name: makespan_ns, bubble_ratio, lower_bound_ns, ...;
/// peak_memory_bytes only if a cost file or a model gives bytes.
using Metrics = std::map<std::string, double>;
Metrics collect_metrics(const BubbleReport& report);

/// How a value must stand to the limit of a condition.
enum class Relation : std::uint8_t { kAtMost, kAtLeast, kEqual, kUnequal, kBelow, kAbove };

/// `bubble_ratio>0.1`
struct Condition {
  std::string text;
  std::string metric;
  Relation relation = Relation::kAbove;
  double limit = 0;
  bool in_percent = false;  ///< the limit was written as "5%"
};

/// Adds `--fail-if CONDITION`, which may be given several times.
void add_gate_option(CommandFlags& app, std::vector<std::string>& conditions);

/// Parses conditions, whose limits may be in percent: "5%" is 0.05. Throws Error for a text that is
/// not a condition.
std::vector<Condition> parse_conditions(const std::vector<std::string>& texts);

/// Throws Error for a condition on an unknown metric, for one in percent on what is no fraction,
/// and for one that always or never holds because its limit is outside the metric's range.
void expect_known(const std::vector<Condition>& conditions, const Metrics& metrics);

/// Reports the conditions that hold on stderr, of one of several jobs with its name; returns true
/// if any does. Throws Error as expect_known does.
bool report_failures(const std::vector<Condition>& conditions, const Metrics& metrics,
                     const std::string& job = "");

}  // namespace bubblescope::tools
