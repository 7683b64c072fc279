// Adds up the rows of the ranks.
#include "traces/reports/read_report_csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/range.h"
#include "traces/files/csv_string.h"

namespace bubblescope::traces {

namespace {

constexpr std::string_view kFirstColumns = "schedule,rank,busy_ns,idle_ns,";

using Row = std::vector<std::string>;

std::vector<Row> split_lines(std::string_view text) {
  std::vector<Row> rows;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) rows.push_back(split_csv_line(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return rows;
}

/// The columns of a table, by name.
class Table {
 public:
  Table(std::string_view text, const std::string& file) : file_(file), rows_(split_lines(text)) {
    for (std::size_t at = 1; at < rows_.size(); ++at)
      if (rows_[at].size() != rows_[0].size())
        throw Error(fmt::format("{}: line {} has {} cells, but the header {}", file, at + 1,
                                rows_[at].size(), rows_[0].size()));
  }

  const Row& names() const { return rows_[0]; }

  /// The numbers of a column; ranks without a trace have blank cells and are left out.
  std::vector<double> numbers(std::size_t column) const {
    std::vector<double> found;
    for (std::size_t at = 1; at < rows_.size(); ++at) {
      const std::string& cell = rows_[at][column];
      if (cell.empty()) continue;
      const auto number = parse_number<double>(cell);
      if (!number || !(*number >= 0 && *number <= static_cast<double>(kMaxNanos)))
        throw Error(fmt::format("{}: line {}, {}: '{}' is not a time, size or count of a report",
                                file_, at + 1, names()[column], cell));
      found.push_back(*number);
    }
    return found;
  }

  std::vector<double> numbers(std::string_view name) const {
    const auto found = std::find(names().begin(), names().end(), name);
    if (found == names().end()) return {};
    return numbers(static_cast<std::size_t>(found - names().begin()));
  }

  /// Whether any row has this word in the column.
  bool says(std::string_view name, std::string_view word) const {
    const auto found = std::find(names().begin(), names().end(), name);
    if (found == names().end()) return false;
    const auto column = static_cast<std::size_t>(found - names().begin());
    return std::any_of(rows_.begin() + 1, rows_.end(),
                       [&](const Row& row) { return row[column] == word; });
  }

 private:
  const std::string& file_;
  std::vector<Row> rows_;
};

double largest(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

}  // namespace

std::optional<std::map<std::string, double>> read_csv_report_numbers(std::string_view text,
                                                                     const std::string& file) {
  if (!text.starts_with(kFirstColumns)) return std::nullopt;
  const Table table(text, file);
  const std::vector<double> busy = table.numbers("busy_ns");
  const std::vector<double> idle = table.numbers("idle_ns");
  const std::vector<double> first = table.numbers("first_start_ns");
  const std::vector<double> last = table.numbers("last_end_ns");
  if (busy.empty() || busy.size() != idle.size() || busy.size() != first.size() ||
      busy.size() != last.size())
    return std::nullopt;
  const double makespan = busy[0] + idle[0];
  const double ideal = largest(busy);
  double all_idle = 0;
  double span = 0;
  for (std::size_t rank = 0; rank < busy.size(); ++rank) {
    all_idle += idle[rank];
    span = std::max(span, last[rank] - first[rank]);
  }
  std::map<std::string, double> numbers{
      {"makespan_ns", makespan}, {"max_span_ns", span}, {"ideal_ns", ideal}};
  numbers["peak_activations"] = largest(table.numbers("peak_activations"));
  if (const std::vector<double> steps = table.numbers("step_ns"); !steps.empty())
    numbers["step_ns"] = steps.front();
  // A trace that is not trusted has no bubble.
  if (table.says("trust", "none") || makespan <= 0 || ideal <= 0 || span <= 0) return numbers;
  numbers["bubble_ratio"] = all_idle / (makespan * static_cast<double>(busy.size()));
  numbers["bubble_overhead"] = (makespan - ideal) / ideal;
  numbers["bubble_span_rate"] = (span - ideal) / span;
  numbers["bubble_time_ns"] = makespan - ideal;
  return numbers;
}

}  // namespace bubblescope::traces
