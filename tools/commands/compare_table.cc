// Lays out compare's table.
#include "tools/commands/compare_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sim/ir/number.h"
#include "sim/ir/op_kinds.h"
#include "sim/predict/model_fit.h"
#include "traces/text/time_axis.h"

namespace bubblescope::tools {

double highest_peak(const BubbleReport& report) {
  double peak = 0;
  for (const RankReport& rank : report.ranks) peak = std::max(peak, rank.peak.activations);
  return peak;
}

std::int64_t max_sends(const BubbleReport& report) {
  std::int64_t sends = 0;
  for (const RankReport& rank : report.ranks) sends = std::max(sends, rank.sends);
  return sends;
}

bool trains(const ComparedRow& row) {
  const Schedule& schedule = *row.step->schedule;
  return has_kind(schedule, OpKind::kBackward) || has_kind(schedule, OpKind::kInputGrad);
}

namespace {

std::string percent(double fraction) { return fmt::format("{:.2f}%", 100 * fraction); }

/// Formats by how much a makespan exceeds another time; "-" where only the other is 0.
std::string above(Nanos makespan, Nanos base) {
  if (base == 0 && makespan > 0) return "-";
  return "+" + percent(fraction(makespan - base, base));
}

/// Whether a rank of the row's model needs more memory than its device has.
bool is_too_full(const ComparedRow& row) {
  if (!row.step || !row.step->models.placed) return false;
  return !find_fit(*row.step->models.placed, row.step->report).fits();
}

}  // namespace

std::vector<traces::TableColumn> columns_of_rows(const std::vector<ComparedRow>& rows) {
  std::array<Nanos, 2> best;  // without and with backwards
  best.fill(std::numeric_limits<Nanos>::max());
  for (const ComparedRow& row : rows)
    if (row.step) best.at(trains(row)) = std::min(best.at(trains(row)), row.step->report.makespan);
  std::vector<traces::TableColumn> columns;
  const auto add = [&](const char* head, int importance, auto&& cell) {
    traces::TableColumn& next = columns.emplace_back();
    next.head = head;
    next.importance = importance;
    for (const ComparedRow& row : rows)
      if (row.step) next.cells.push_back(cell(row, row.step->report));
  };
  using Report = const BubbleReport&;
  add("schedule", traces::kAlwaysShown, [](const ComparedRow& row, Report) { return row.name; });
  columns.back().left = true;
  add("makespan", traces::kAlwaysShown,
      [](const ComparedRow&, Report report) { return traces::format_time(report.makespan); });
  add("vs best", 8, [&](const ComparedRow& row, Report report) {
    return above(report.makespan, best.at(trains(row)));
  });
  add("bubble", 7, [](const ComparedRow&, Report report) { return percent(report.bubble->ratio); });
  add("span rate", 1,
      [](const ComparedRow&, Report report) { return percent(report.bubble->span_rate); });
  add("over bound", 5,
      [](const ComparedRow&, Report report) { return above(report.makespan, report.lower_bound); });
  add("peak act", 6, [](const ComparedRow&, Report report) {
    return fmt::format("{:.4g}", highest_peak(report));
  });
  add("sends", 2,
      [](const ComparedRow&, Report report) { return std::to_string(max_sends(report)); });
  if (std::any_of(rows.begin(), rows.end(), is_too_full))
    add("fits", 9, [](const ComparedRow& row, Report) { return is_too_full(row) ? "NO" : "yes"; });
  return columns;
}

}  // namespace bubblescope::tools
