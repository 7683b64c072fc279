// Gates: conditions on the values of a report that turn a command's exit status into 1.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/analysis/report.h"
#include "tools/flags/command_flags.h"

namespace bubblescope::tools {

/// The numbers that a condition can name: makespan_ns, bubble_ratio, lower_bound_ns, ...;
/// peak_memory_bytes only where a cost file or a model gives bytes.
using Metrics = std::map<std::string, double>;
Metrics collect_metrics(const BubbleReport& report);

/// `bubble_ratio>0.1`
struct Condition {
  std::string text;
  std::string metric;
  std::string comparison;  ///< one of < <= > >= == !=
  double limit = 0;
};

/// Adds `--fail-if CONDITION`, which may be given several times.
void add_gate_option(CommandFlags& app, std::vector<std::string>& conditions);

/// Throws Error for a text that is no condition.
std::vector<Condition> parse_conditions(const std::vector<std::string>& texts);

/// Throws Error for a condition on a number that is not among the metrics, and for one that always
/// or never holds because its limit is none that the number can have.
void expect_known(const std::vector<Condition>& conditions, const Metrics& metrics);

/// Reports the conditions that hold on stderr; true if any does. Throws what expect_known throws.
bool report_failures(const std::vector<Condition>& conditions, const Metrics& metrics);

}  // namespace bubblescope::tools
