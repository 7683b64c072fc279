// Writes one row per rank.
#include "traces/reports/report_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/analysis/conclusions.h"
#include "sim/analysis/idle.h"
#include "traces/files/csv_string.h"

namespace bubblescope::traces {

namespace {

/// Parts that never make their rank wait have no column.
bool has_column(const PartReport& part) {
  return std::any_of(part.exposed.begin(), part.exposed.end(),
                     [](Nanos exposed) { return exposed > 0; });
}

std::string header(const BubbleReport& report, const std::vector<IdleCause>& causes) {
  std::string out =
      "schedule,rank,busy_ns,idle_ns,first_start_ns,last_end_ns,sends,peak_chunks,"
      "peak_activations,peak_units,peak_memory_bytes";
  for (int kind = 0; kind < kBusyKinds; ++kind)
    out += fmt::format(",busy_{}_ns", name(static_cast<BusyKind>(kind)));
  for (const IdleCause cause : causes) out += fmt::format(",idle_{}_ns", name(cause));
  if (report.parts)
    for (const PartReport& part : report.parts->parts)
      if (has_column(part)) out += fmt::format(",exposed_{}_ns", part.name);
  return out + '\n';
}

}  // namespace

std::string write_report_csv(const BubbleReport& report) { return write_report_csv(report, {}); }

std::string write_report_csv(const BubbleReport& report,
                             const std::vector<std::pair<std::string, std::string>>& members) {
  const std::vector<IdleCause> causes = choose_idle_causes(report);
  std::string out = header(report, causes);
  std::string values;
  out.pop_back();
  const auto columns = std::count(out.begin(), out.end(), ',') + 1;
  const auto blanks = static_cast<std::size_t>(columns - 2);  // but for schedule and rank
  for (const auto& [name, value] : members) {
    out += "," + name;
    values += "," + csv_field(value);
  }
  out += '\n';
  const std::string schedule = csv_field(report.schedule);
  for (std::size_t rank = 0; rank < report.ranks.size(); ++rank) {
    const RankReport& row = report.ranks[rank];
    if (!row.is_recorded) {
      out += fmt::format("{},{}", schedule, rank) + std::string(blanks, ',') + values + '\n';
      continue;
    }
    fmt::format_to(std::back_inserter(out), "{},{},{},{},{},{},{},{},{},{},{}", schedule, rank,
                   row.busy, row.idle, row.first_start, row.last_end, row.sends, row.peak.chunks,
                   row.peak.activations, row.peak.units,
                   row.peak.bytes ? fmt::format("{}", *row.peak.bytes) : "");
    for (const Nanos busy : row.busy_by_kind) fmt::format_to(std::back_inserter(out), ",{}", busy);
    for (const IdleCause cause : causes)
      out += is_conclusive(report)
                 ? fmt::format(",{}", row.idle_by_cause[static_cast<std::size_t>(cause)])
                 : ",";
    if (report.parts)
      for (const PartReport& part : report.parts->parts)
        if (has_column(part)) fmt::format_to(std::back_inserter(out), ",{}", part.exposed[rank]);
    out += values + '\n';
  }
  return out;
}

}  // namespace bubblescope::traces
