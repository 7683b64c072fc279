// Writes the rows of compare as csv and as json.
#include "tools/commands/compare_formats.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>

#include "sim/analysis/highest_peak.h"
#include "sim/model/known_errors.h"
#include "sim/predict/model_fit.h"
#include "tools/commands/compare_table.h"
#include "tools/commands/vs_best.h"
#include "traces/files/csv_string.h"
#include "traces/json/json_writer.h"
#include "traces/reports/report_json.h"

namespace bubblescope::tools {

namespace {

/// The micro-batches of a step, and where its peak has bytes or its model a device, how it fits.
std::string memory_csv(const ComparedRow& row) {
  std::string text = std::to_string(row.step->schedule->shape.microbatches) + ",";
  if (const std::optional<ModelFit> fit = find_row_fit(row))
    return text +
           fmt::format("{},{},{},{}", fit->peak, fit->head_room, fit->fits(), gradients_of(row));
  const std::optional<Bytes> peak = find_highest_peak(row.step->report).bytes;
  return text + (peak ? std::to_string(*peak) : "") + ",,,";
}

/// Writes by how much a row's step exceeds the best one, and whether ranks choose their ops.
void write_place(traces::JsonWriter& json, const ComparedRow& row, double excess) {
  if (row.hint) json.line(1).member("policy", "ready");
  json.line(1).key("vs_best");
  std::isnan(excess) ? json.null() : json.shortest(excess);
}

/// Says whether a model's ranks fit, as the report of simulate does.
void write_fit(traces::JsonWriter& json, const TimedStep& step) {
  if (!step.models.placed) return;
  const ModelFit fit = find_fit(*step.models.placed, step.report);
  json.line(1).member("fits", fit.fits()).line(1).member("head_room_bytes", fit.head_room);
  const ModelOnDevices& on = step.models.placed->on;
  const NearestErrors errors = find_nearest_errors(on);
  if (!errors.unpublished_schedule.empty())
    json.line(1).member("unpublished_schedule", errors.unpublished_schedule);
  json.line(1).member("gradients", name_of(kGradientFormats, on.parallel.gradients));
}

}  // namespace

std::vector<NamedReport> collect_reports(const std::vector<ComparedRow>& rows) {
  std::vector<NamedReport> reports;
  for (const ComparedRow& row : rows)
    if (row.step) reports.push_back({row.name, &row.step->report});
  return reports;
}

std::string write_rows_csv(const std::vector<ComparedRow>& rows) {
  const std::vector<NamedReport> reports = collect_reports(rows);
  std::string text = fmt::format(
      "schedule,makespan_ns,max_span_ns,ideal_ns,lower_bound_ns,bubble_ratio,bubble_overhead,"
      "bubble_span_rate,peak_activations,sends,refused,period_ns,step_ns,microbatches,"
      "peak_memory_bytes,head_room_bytes,fits,gradients{},vs_best\n",
      write_noise_csv_header(reports));
  const std::vector<double> excesses = excesses_over_best(rows);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const ComparedRow& row = rows[at];
    const std::string refusal = row.refusal.empty() ? "" : traces::csv_string(row.refusal);
    if (!row.step) {
      text += fmt::format("{},,,,,,,,,,{},,,,,,,{},\n", traces::csv_string(row.name), refusal,
                          write_noise_csv_values(reports, row.name));
      continue;
    }
    const BubbleReport& report = row.step->report;
    const std::string period = report.period ? std::to_string(*report.period) : "";
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{}{},{}\n", traces::csv_string(row.name),
        report.makespan, report.max_span, report.ideal, report.lower_bound, report.bubble->ratio,
        report.bubble->overhead, report.bubble->span_rate, find_highest_peak(report).activations,
        max_sends(report), refusal, period, whole_step(report), memory_csv(row),
        write_noise_csv_values(reports, row.name), excess_csv(excesses[at]));
  }
  return text;
}

std::string write_rows_json(const std::vector<ComparedRow>& rows) {
  std::string text;
  traces::JsonWriter json(text);
  json.begin_object().member("format", "bubblescope-comparison/1").key("reports").begin_array();
  const std::vector<NamedReport> reports = collect_reports(rows);
  if (reports.empty()) json.line(0);
  const std::vector<double> excesses = excesses_over_best(rows);
  for (std::size_t at = 0; at < rows.size(); ++at) {
    const ComparedRow& row = rows[at];
    if (!row.step) continue;
    const auto write_more = [&](traces::JsonWriter& members) {
      write_place(members, row, excesses[at]);
      write_fit(members, *row.step);
    };
    json.line(0).raw(traces::write_report_json(row.step->report, row.step->program,
                                               row.step->timeline, write_more));
  }
  json.end_array().key("refused").begin_array();
  for (const ComparedRow& row : rows) {
    if (row.refusal.empty()) continue;
    json.line_between(0).begin_object().member("schedule", row.name);
    json.member("reason", row.refusal).end_object();
  }
  json.end_array();
  write_win_probability_json(json, reports);
  json.end_object();
  return text + "\n";
}

}  // namespace bubblescope::tools
