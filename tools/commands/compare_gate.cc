// Evaluates conditions on the rows of compare.
#include "tools/commands/compare_gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "tools/commands/compare_table.h"
#include "tools/commands/measured_spread.h"
#include "tools/commands/step_metrics.h"
#include "tools/errors.h"
#include "tools/flags/schedule_list.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

namespace {

namespace fs = std::filesystem;

RowCondition parse_row_condition(const std::string& text) {
  const std::size_t sign = text.find_first_of("<>=!");
  const std::size_t colon = sign == text.npos ? text.npos : text.rfind(':', sign);
  const std::string condition = colon == text.npos ? text : trim(text.substr(colon + 1));
  const std::string schedule = colon == text.npos ? "" : trim(text.substr(0, colon));
  if (colon != text.npos && schedule.empty())
    throw Error("--fail-if: '" + text +
                "' names no schedule before its colon; leave the colon out for a condition on all");
  return {schedule, parse_conditions({condition}).front()};
}

/// The ways in which a condition may name a row, from the nearest to the widest.
constexpr std::array<bool (*)(const std::string&, const GateRow&), 4> kNamings{
    [](const std::string& name, const GateRow& row) {
      return name == row.name || is_same_schedule(name, row.schedule);
    },
    [](const std::string& name, const GateRow& row) {
      return fs::path(name).lexically_normal() == fs::path(row.schedule).lexically_normal();
    },
    [](const std::string& name, const GateRow& row) {
      return name == fs::path(row.schedule).filename();
    },
    [](const std::string& name, const GateRow& row) {
      return name == fs::path(row.schedule).stem();
    }};

/// The rows that a condition is about: those with the nearest name. Throws Error where it names
/// several schedules alike.
std::vector<const GateRow*> find_rows(const std::string& schedule,
                                      const std::vector<GateRow>& rows) {
  std::vector<const GateRow*> found;
  for (const auto& is_named : kNamings) {
    std::set<std::string> schedules;
    for (const GateRow& row : rows) {
      if (!schedule.empty() && !is_named(schedule, row)) continue;
      found.push_back(&row);
      schedules.insert(row.schedule);
    }
    if (schedule.empty() || schedules.size() == 1) break;
    if (schedules.size() > 1)
      throw Error(fmt::format("--fail-if: '{}' could be any of {}; give its path", schedule,
                              fmt::join(schedules, ", ")));
  }
  return found;
}

/// Errors count whatever their sign, as in json.
void add_errors(Metrics& metrics, const PredictionError& error) {
  metrics["error_makespan"] = std::abs(error.makespan);
  metrics["error_bubble_ratio"] = std::abs(error.bubble_ratio);
  metrics["error_op_start_p50"] = error.op_start_p50;
  metrics["error_op_start_p95"] = error.op_start_p95;
  metrics["error_peak_memory"] = std::abs(error.peak_memory);
}

/// An entry for each row; one that was refused has no numbers. `metrics_of` takes a row's index.
std::vector<GateRow> collect_rows(const std::vector<ComparedRow>& rows, const auto& metrics_of) {
  std::vector<GateRow> gated;
  for (std::size_t at = 0; at < rows.size(); ++at)
    gated.push_back({rows[at].name, rows[at].schedule, rows[at].step ? metrics_of(at) : Metrics{}});
  return gated;
}

/// Whether a number that a condition names is not known of a row.
bool is_unknown(const Condition& condition, const GateRow& row) {
  const auto found = row.metrics.find(condition.metric);
  return found != row.metrics.end() && std::isnan(found->second);
}

}  // namespace

void add_row_gate_option(CommandFlags& app, std::vector<std::string>& conditions) {
  app.add_option("--fail-if", conditions,
                 "exit 1 if this holds for any schedule, e.g. 'bubble_ratio>0.1', or for one: "
                 "'zb-v:vs_best>2%'")
      ->type_name("CONDITION");
}

std::vector<RowCondition> parse_row_conditions(const std::vector<std::string>& texts) {
  std::vector<RowCondition> conditions;
  for (const std::string& text : texts) conditions.push_back(parse_row_condition(text));
  return conditions;
}

std::vector<GateRow> collect_gate_rows(const std::vector<ComparedRow>& rows) {
  const std::vector<double> excesses = excesses_over_best(rows);
  return collect_rows(rows, [&](std::size_t at) {
    Metrics metrics = collect_step_metrics(*rows[at].step);
    metrics["vs_best"] = excesses[at];
    return metrics;
  });
}

std::vector<GateRow> collect_unmeasured_rows(const std::vector<ComparedRow>& rows) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  return collect_rows(rows, [&](std::size_t at) {
    Metrics metrics = collect_metrics(rows[at].step->report);
    metrics["vs_best"] = kUnknown;
    add_errors(metrics, {kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, {}, {}});
    return metrics;
  });
}

std::vector<GateRow> measure_rows(std::vector<GateRow> rows,
                                  const std::vector<Comparison>& comparisons) {
  const std::vector<double> excesses = excesses_over_best(comparisons);
  std::vector<GateRow> measured;
  for (GateRow& row : rows) {
    const auto of_row = std::find_if(comparisons.begin(), comparisons.end(),
                                     [&](const Comparison& one) { return one.label == row.name; });
    if (of_row == comparisons.end()) continue;
    row.metrics = collect_metrics(of_row->measured.step.report);
    row.metrics["vs_best"] = excesses[static_cast<std::size_t>(of_row - comparisons.begin())];
    add_errors(row.metrics, of_row->error);
    measured.push_back(std::move(row));
  }
  return measured;
}

void expect_known(const std::vector<RowCondition>& conditions, const std::vector<GateRow>& rows) {
  std::vector<std::string> names;
  for (const GateRow& row : rows) names.push_back(row.name);
  for (const RowCondition& each : conditions) {
    const std::vector<const GateRow*> found = find_rows(each.schedule, rows);
    for (const GateRow* const row : found)
      if (!row->metrics.empty()) expect_known({each.condition}, row->metrics);
    if (found.empty() && !each.schedule.empty())
      throw Error(fmt::format("--fail-if: '{}' is none of the schedules that are compared{} ({})",
                              each.schedule, suggestion(nearest_names(each.schedule, names)),
                              fmt::join(names, ", ")));
  }
}

void warn_of_noise(const std::vector<RowCondition>& conditions,
                   const std::vector<ComparedRow>& rows) {
  const auto has_step = [](const ComparedRow& row) { return row.step.has_value(); };
  const auto first = std::find_if(rows.begin(), rows.end(), has_step);
  std::vector<Condition> all;
  for (const RowCondition& each : conditions) all.push_back(each.condition);
  if (first != rows.end()) warn_of_noise(first->step->report, all);
}

bool report_failures(const std::vector<RowCondition>& conditions,
                     const std::vector<GateRow>& rows) {
  bool failed = false;
  for (const RowCondition& each : conditions)
    for (const GateRow* const row : find_rows(each.schedule, rows)) {
      if (row->metrics.empty()) continue;
      if (is_unknown(each.condition, *row)) {
        print_error(fmt::format("{}: --fail-if cannot be evaluated: {} is not known", row->name,
                                each.condition.metric));
        failed = true;
        continue;
      }
      failed |= report_failures({each.condition}, row->metrics, row->name);
    }
  return failed;
}

}  // namespace bubblescope::tools
