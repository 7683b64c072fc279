// compare --fail-if: conditions on each schedule, or on one of them.
//
//   --fail-if 'bubble_ratio>0.2'       fails if any schedule has a larger bubble
//   --fail-if 'mine.csv:vs_best>0.02'  fails if mine.csv is more than 2 % slower than the best
#pragma once

#include <string>
#include <vector>

#include "tools/commands/compare_measured.h"
#include "tools/commands/compare_rows.h"
#include "tools/commands/gate.h"

namespace bubblescope::tools {

/// A condition, and the schedule that it is about; empty: each of them.
struct RowCondition {
  std::string schedule;
  Condition condition;
};

/// The numbers of one row that conditions can name.
struct GateRow {
  std::string name;      ///< as it is printed, with its shape where there are several
  std::string schedule;  ///< the name without the shape
  Metrics metrics;
};

/// Adds `--fail-if CONDITION`, which may be given several times.
void add_row_gate_option(CommandFlags& app, std::vector<std::string>& conditions);

/// Parses conditions. Throws Error for a text that is not a condition.
std::vector<RowCondition> parse_row_conditions(const std::vector<std::string>& texts);

/// All rows, with `vs_best`: by how much a step exceeds the best one, as a fraction. A row that was
/// refused has no numbers: no condition on it holds, and its refusal fails the comparison anyway.
std::vector<GateRow> collect_gate_rows(const std::vector<ComparedRow>& rows);

/// The same before rows are measured: errors and `vs_best` have no values yet.
std::vector<GateRow> collect_unmeasured_rows(const std::vector<ComparedRow>& rows);

/// The measured rows with the numbers of their steps, `vs_best`, and the errors of their
/// predictions: `error_makespan`, `error_bubble_ratio`, `error_op_start_p50`, `error_op_start_p95`
/// and `error_peak_memory`.
std::vector<GateRow> measure_rows(std::vector<GateRow> rows,
                                  const std::vector<Comparison>& comparisons);

/// Throws Error for a condition on an unknown schedule or number, and for one that always or never
/// holds because its limit is outside the number's range.
void expect_known(const std::vector<RowCondition>& conditions, const std::vector<GateRow>& rows);

/// Says that conditions look at steps without noise, where rows have noise and a condition does not
/// name it.
void warn_of_noise(const std::vector<RowCondition>& conditions,
                   const std::vector<ComparedRow>& rows);

/// Reports the conditions that hold on stderr, with the row's name, and those on numbers that are
/// not known; returns true if there are any.
bool report_failures(const std::vector<RowCondition>& conditions, const std::vector<GateRow>& rows);

}  // namespace bubblescope::tools
