// Writes the table of tries.
#include "traces/reports/tries.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/ir/counted.h"
#include "traces/reports/cause_phrases.h"
#include "traces/reports/cause_text.h"
#include "traces/text/time_axis.h"

namespace bubblescope::traces {

namespace {

constexpr double kMinReported = 0.01;

std::string percent(double fraction) { return fmt::format("{:+.1f} %", 100 * fraction); }

bool has_width(const Interval& change) { return change.p5 < change.p95; }

std::string interval_text(const Interval& change) {
  if (!has_width(change)) return fmt::format("{:>9}  -", percent(change.mean));
  return fmt::format("{:>9}  {:+.1f} to {:+.1f} %", percent(change.mean), 100 * change.p5,
                     100 * change.p95);
}

/// The change of the step when a cause is removed, which saves time: the 5 % quantile of the change
/// is the 95 % quantile of the savings.
Interval change_without(const Cause& cause, Nanos step) {
  const auto part = [&](Nanos saved) {
    return step == 0 ? 0 : -static_cast<double>(saved) / static_cast<double>(step);
  };
  return {part(cause.saves), part(cause.saves_p95), part(cause.saves_p5)};
}

void write_interval(JsonWriter& json, const Interval& change) {
  json.key("change").fixed(change.mean, 6).key("change_p5").fixed(change.p5, 6);
  json.key("change_p95").fixed(change.p95, 6);
}

/// Writes a row. `mark` is a member that is true: "measured", "best", or null for none.
void write_row(JsonWriter& json, const Tries& tries, const TryRow& row, const char* mark) {
  json.line(2).begin_object().member("schedule", row.schedule);
  json.member("microbatches", row.microbatches);
  if (row.chunks) json.member("chunks", *row.chunks);
  if (!row.problem.empty()) {
    json.member("problem", row.problem).end_object();
    return;
  }
  json.member("step_ns", std::llround(row.step.mean)).member("p5_ns", std::llround(row.step.p5));
  json.member("p95_ns", std::llround(row.step.p95));
  write_interval(json, row.change);
  json.member("peak_units", row.peak_units).key("memory_ratio").fixed(row.memory_ratio, 6);
  if (!row.refused_by_pytorch.empty()) json.member("refused_by_pytorch", row.refused_by_pytorch);
  if (mark != nullptr) json.member(mark, true);
  if (&row == &tries.rows.front()) json.member("measured_ns", std::llround(tries.measured_step));
  json.end_object();
}

void write_without(JsonWriter& json, const CauseReport* causes, Nanos step) {
  json.line(1).key("without").begin_array();
  for (const Cause& cause : causes == nullptr ? std::vector<Cause>{} : causes->causes) {
    json.line(2).begin_object().member("cause", cause_code(cause.kind()));
    json.member("where", phrase_cause(cause).place);
    write_interval(json, change_without(cause, step));
    json.end_object();
  }
  json.end_array();
}

/// A row of the table; that of the measured schedule has the measured step.
std::string row_text(const TryRow& row, std::optional<double> measured_step) {
  const bool is_measured = measured_step.has_value();
  std::string name = row.schedule;
  if (row.chunks) name += fmt::format(", {}", counted(*row.chunks, "chunk"));
  if (is_measured) name += " (measured)";
  if (!row.problem.empty())
    return fmt::format("{:<26}{:>5}  {}\n", name, row.microbatches, row.problem);
  return fmt::format("{:<26}{:>5}{:>11}  {:<28}{:>6.2f} x\n", name, row.microbatches,
                     format_time(std::llround(measured_step.value_or(row.step.mean))),
                     is_measured ? "" : interval_text(row.change), row.memory_ratio);
}

}  // namespace

void write_tries_json(JsonWriter& json, const std::optional<Tries>& tries,
                      const CauseReport* causes, Nanos step) {
  json.line(1).key("tries");
  if (!tries) {
    json.null();
    return;
  }
  json.begin_array();
  for (std::size_t at = 0; at < tries->rows.size(); ++at)
    write_row(json, *tries, tries->rows[at],
              at == 0             ? "measured"
              : at == tries->best ? "best"
                                  : nullptr);
  json.end_array();
  write_without(json, causes, step);
  json.line(1).key("fit_error").fixed(tries->fit_error, 6);
  json.line(1).array("try_notes", tries->notes);
}

std::string write_tries_text(const Tries& tries, const CauseReport* causes, Nanos step) {
  std::string text = fmt::format("\n{:<26}{:>5}{:>11}  {:>9}  {:<17}{:>8}\n", "try", "m", "step",
                                 "change", "p5 to p95", "memory");
  for (const TryRow& row : tries.rows)
    text += row_text(
        row, &row == &tries.rows.front() ? std::optional(tries.measured_step) : std::nullopt);
  for (const Cause& cause : causes == nullptr ? std::vector<Cause>{} : causes->causes) {
    const Interval change = change_without(cause, step);
    if (-change.mean < kMinReported) continue;
    text +=
        fmt::format("{:<44}{}\n", "without: " + phrase_cause(cause).name, interval_text(change));
  }
  if (tries.first_step > 0)
    text += fmt::format(
        "(measured) leaves out the first {}, as every row does; the numbers above include them\n",
        counted(tries.first_step, "step"));
  text += fmt::format(
      "change: of the time per micro-batch, against the measured schedule with the same costs\n"
      "(fitted to the trace: with them the measured schedule takes {}, {:.2g} % off)\n",
      format_time(std::llround(tries.rows.front().step.mean)), 100 * std::abs(tries.fit_error));
  const bool any_tried = std::any_of(tries.rows.begin() + 1, tries.rows.end(),
                                     [](const TryRow& row) { return row.problem.empty(); });
  if (any_tried && std::none_of(tries.rows.begin(), tries.rows.end(),
                                [](const TryRow& row) { return has_width(row.change); }))
    text += "note: the measured steps show no spread, so that no range can be given\n";
  for (const std::string& note : tries.notes) text += "note: " + note + "\n";
  return text;
}

}  // namespace bubblescope::traces
