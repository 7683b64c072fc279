// Chooses columns by importance, and breaks lines between words.
#include "traces/text/fit_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr int kGap = 2;  ///< between columns

int width_of(const TableColumn& column) {
  int width = measure_columns(column.head);
  for (const std::string& cell : column.cells) width = std::max(width, measure_columns(cell));
  return width;
}

int width_of(const std::vector<const TableColumn*>& columns) {
  int width = -kGap;
  for (const TableColumn* column : columns) width += kGap + width_of(*column);
  return width;
}

std::string pad(const std::string& text, int width, bool left) {
  const std::string space(static_cast<std::size_t>(width - measure_columns(text)), ' ');
  return left ? text + space : space + text;
}

bool tells_rows_apart(const TableColumn& column) {
  return std::any_of(column.cells.begin(), column.cells.end(),
                     [&](const std::string& cell) { return cell != column.cells.front(); });
}

/// The rank of a column when columns are left out; the lowest goes first. Columns with the same
/// cell in every row rank below all others.
std::pair<bool, int> standing(const TableColumn& column) {
  const bool always = column.importance >= kAlwaysShown;
  return {always || tells_rows_apart(column), column.importance};
}

std::vector<const TableColumn*> fitting(const std::vector<TableColumn>& columns,
                                        std::optional<int> width) {
  std::vector<const TableColumn*> shown;
  for (const TableColumn& column : columns) shown.push_back(&column);
  while (width && width_of(shown) > *width) {
    const auto lowest = std::min_element(shown.rbegin(), shown.rend(),
                                         [](const TableColumn* left, const TableColumn* right) {
                                           return standing(*left) < standing(*right);
                                         });
    if ((*lowest)->importance >= kAlwaysShown) break;
    shown.erase(std::next(lowest).base());
  }
  return shown;
}

std::vector<std::string> hidden_heads(const std::vector<TableColumn>& columns,
                                      const std::vector<const TableColumn*>& shown,
                                      bool parts_alone) {
  std::vector<std::string> heads;
  for (const TableColumn& column : columns)
    if ((column.is_part || !parts_alone) &&
        std::find(shown.begin(), shown.end(), &column) == shown.end())
      heads.push_back(column.head);
  return heads;
}

/// Returns `columns` with one column in place of the parts with these heads, after the parts that
/// are left. If no part is left, there is no such column, because it would repeat the total.
std::vector<TableColumn> fold_columns(const std::vector<TableColumn>& columns,
                                      const std::vector<std::string>& heads,
                                      const FoldParts& fold) {
  std::vector<TableColumn> folded;
  std::size_t behind = 0;
  for (const TableColumn& column : columns) {
    const bool is_folded =
        column.is_part && std::find(heads.begin(), heads.end(), column.head) != heads.end();
    if (is_folded) continue;
    folded.push_back(column);
    if (column.is_part) behind = folded.size();
  }
  if (behind == 0) return folded;
  TableColumn others = fold(heads);
  others.importance = kAlwaysShown - 1;
  folded.insert(folded.begin() + static_cast<std::ptrdiff_t>(behind), std::move(others));
  return folded;
}

/// The indent of continuation lines: where the text after the label begins, or where the line
/// itself does if it has none.
std::size_t indent_of(std::string_view line, std::size_t max_label) {
  const std::size_t first = line.find_first_not_of(' ');
  const std::size_t gap = line.find("  ", first);
  if (first == std::string_view::npos) return 2;
  if (gap == std::string_view::npos) return std::max<std::size_t>(first, 2);
  const std::size_t begin = line.find_first_not_of(' ', gap);
  return begin == std::string_view::npos || begin > max_label ? first + 2 : begin;
}

std::string fold_line(std::string_view line, int width, std::size_t max_label) {
  if (measure_columns(line) <= width) return std::string(line);
  const std::size_t indent =
      std::min(indent_of(line, max_label), static_cast<std::size_t>(width / 2));
  std::string text;
  std::string current(line.substr(0, indent));
  std::size_t at = std::min(indent, line.size());
  bool begins = true;
  while (at < line.size()) {
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::string_view gap = line.substr(at, word - at);
    const std::string_view next = line.substr(word, end - word);
    if (!begins &&
        measure_columns(current) + measure_columns(gap) + measure_columns(next) > width) {
      text += current + "\n";
      current = std::string(indent, ' ');
    } else {
      current += gap;
    }
    current += next;
    begins = false;
    at = end;
  }
  return text + current;
}

/// Draws the heads, then one line per row.
std::string draw_rows(const std::vector<const TableColumn*>& shown) {
  std::string text;
  const std::size_t rows = shown.front()->cells.size() + 1;
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (const TableColumn* column : shown) {
      if (column != shown.front()) line += std::string(kGap, ' ');
      line +=
          pad(row == 0 ? column->head : column->cells[row - 1], width_of(*column), column->left);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

FittedTable draw_table(const std::vector<TableColumn>& columns, std::optional<int> width,
                       const FoldParts& fold) {
  std::vector<TableColumn> kept = columns;
  std::vector<std::string> folded;
  std::vector<const TableColumn*> shown = fitting(kept, width);
  while (fold) {
    const std::vector<std::string> more = hidden_heads(kept, shown, true);
    if (more.empty()) break;
    folded.insert(folded.end(), more.begin(), more.end());
    kept = fold_columns(columns, folded, fold);
    shown = fitting(kept, width);
  }
  FittedTable table;
  std::vector<std::string> left_out = hidden_heads(kept, shown, false);
  left_out.insert(left_out.end(), folded.begin(), folded.end());
  for (const TableColumn& column : columns)
    if (std::find(left_out.begin(), left_out.end(), column.head) != left_out.end())
      table.hidden.push_back(column.head);
  table.text = draw_rows(shown);
  return table;
}

std::string describe_hidden(const std::vector<std::string>& hidden) {
  if (hidden.empty()) return "";
  return fmt::format("not shown: {} (`wide` shows all)\n", fmt::join(hidden, ", "));
}

std::string fold_lines(std::string_view text, int width, std::size_t max_label) {
  std::string folded;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    folded += fold_line(text.substr(0, end), width, max_label);
    if (end < text.size()) folded += "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return folded;
}

}  // namespace bubblescope::traces
