// Writes win probabilities as text, json and csv.
#include "tools/commands/compare_noise.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/analysis/step_times.h"
#include "sim/ir/counted.h"
#include "sim/ir/saturated.h"
#include "traces/files/csv_string.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

namespace {

bool has_noise(const std::vector<NamedReport>& reports) {
  return !reports.empty() && reports.front().report->noise;
}

/// Step times of the first per micro-batch, scaled by the micro-batches of both.
std::vector<Nanos> scaled_makespans(const NamedReport& first, const NamedReport& second) {
  std::vector<Nanos> makespans = first.report->noise->makespans;
  const std::int32_t others = second.report->shape.microbatches;
  if (first.report->shape.microbatches == others) return makespans;
  for (Nanos& makespan : makespans) makespan = saturated_product(makespan, others);
  return makespans;
}

/// Per micro-batch, because steps may have different numbers of them.
double win_probability(const NamedReport& first, const NamedReport& second) {
  return compute_win_probability(scaled_makespans(first, second), scaled_makespans(second, first));
}

}  // namespace

std::string write_win_probability_text(const std::vector<NamedReport>& reports) {
  if (!has_noise(reports)) return {};
  std::string text =
      fmt::format("\n{:<16}{:>16}{:>16}",
                  counted(reports[0].report->noise->makespans.size(), "step"), "p50", "p95");
  const auto width = [](const NamedReport& report) {
    return std::max<std::size_t>(report.name.size() + 2, 9);
  };
  for (const NamedReport& column : reports)
    text += fmt::format("{:>{}}", column.name, width(column));
  text += "\n";
  for (const NamedReport& row : reports) {
    text += fmt::format("{:<16}{:>16}{:>16}", row.name, traces::format_time(row.report->noise->p50),
                        traces::format_time(row.report->noise->p95));
    for (const NamedReport& column : reports)
      text += fmt::format(
          "{:>{}}",
          &row == &column ? "-" : fmt::format("{:.1f}%", 100 * win_probability(row, column)),
          width(column));
    text += "\n";
  }
  return text +
         "\np50, p95: quantiles of the step time under noise; columns: win probability of the row's"
         "\nschedule against the column's, over the same steps\n";
}

std::string write_noise_csv_header(const std::vector<NamedReport>& reports) {
  if (!has_noise(reports)) return {};
  const auto columns_of = [&](const char* prefix) {
    std::string columns;
    for (const NamedReport& column : reports)
      columns += "," + traces::csv_field(prefix + column.name);
    return columns;
  };
  return ",p50_ns,p95_ns,mean_ns,min_ns,max_ns" + columns_of("win_probability_") +
         ",least_ns,most_ns" + columns_of("beats_");
}

std::string write_noise_csv_values(const std::vector<NamedReport>& reports,
                                   const std::string& name) {
  if (!has_noise(reports)) return {};
  const auto row = std::find_if(reports.begin(), reports.end(),
                                [&](const NamedReport& report) { return report.name == name; });
  if (row == reports.end()) return std::string(7 + 2 * reports.size(), ',');
  const StepTimes& noise = *row->report->noise;
  std::string same = fmt::format(",{},{}", noise.shortest, noise.longest);
  for (const NamedReport& column : reports)
    same += fmt::format(",{}", win_probability(*row, column));
  return fmt::format(",{},{},{:.0f}", noise.p50, noise.p95, noise.mean) + same + same;
}

void write_win_probability_json(traces::JsonWriter& json, const std::vector<NamedReport>& reports) {
  if (!has_noise(reports)) return;
  for (const char* key : {"win_probability", "beats"}) {
    json.key(key).begin_array();
    for (const NamedReport& row : reports) {
      json.begin_array();
      for (const NamedReport& column : reports) json.shortest(win_probability(row, column));
      json.end_array();
    }
    json.end_array();
  }
}

}  // namespace bubblescope::tools
