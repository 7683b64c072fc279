// Chooses columns by importance, and breaks lines between words.
#include "traces/fit_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>

#include "traces/wording.h"

namespace bubblescope {

namespace {

constexpr int kGap = 2;  ///< between columns

int width_of(const TableColumn& column) {
  int width = columns_of(column.head);
  for (const std::string& cell : column.cells) width = std::max(width, columns_of(cell));
  return width;
}

int width_of(const std::vector<const TableColumn*>& columns) {
  int width = -kGap;
  for (const TableColumn* column : columns) width += kGap + width_of(*column);
  return width;
}

std::string pad(const std::string& text, int width, bool left) {
  const std::string space(static_cast<std::size_t>(width - columns_of(text)), ' ');
  return left ? text + space : space + text;
}

std::vector<const TableColumn*> fitting(const std::vector<TableColumn>& columns,
                                        std::optional<int> width) {
  std::vector<const TableColumn*> shown;
  for (const TableColumn& column : columns) shown.push_back(&column);
  while (width && width_of(shown) > *width) {
    const auto least = std::min_element(shown.rbegin(), shown.rend(),
                                        [](const TableColumn* left, const TableColumn* right) {
                                          return left->importance < right->importance;
                                        });
    if ((*least)->importance >= kAlwaysShown) break;
    shown.erase(std::next(least).base());
  }
  return shown;
}

/// The position of the text after a line's label; 2 where there is no label.
std::size_t indent_of(std::string_view line) {
  constexpr std::size_t kLongestLabel = 20;
  const std::size_t first = line.find_first_not_of(' ');
  const std::size_t gap = line.find("  ", first);
  if (first == std::string_view::npos || gap == std::string_view::npos) return 2;
  const std::size_t begin = line.find_first_not_of(' ', gap);
  return begin == std::string_view::npos || begin > kLongestLabel ? first + 2 : begin;
}

std::string fold_line(std::string_view line, int width) {
  if (columns_of(line) <= width) return std::string(line);
  const std::size_t indent = std::min(indent_of(line), static_cast<std::size_t>(width / 2));
  std::string text;
  std::string current(line.substr(0, indent));
  std::size_t at = std::min(indent, line.size());
  bool begins = true;
  while (at < line.size()) {
    const std::size_t word = std::min(line.find_first_not_of(' ', at), line.size());
    const std::size_t end = std::min(line.find(' ', word), line.size());
    const std::string_view gap = line.substr(at, word - at);
    const std::string_view next = line.substr(word, end - word);
    if (!begins && columns_of(current) + columns_of(gap) + columns_of(next) > width) {
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

}  // namespace

FittedTable draw_table(const std::vector<TableColumn>& columns, std::optional<int> width) {
  const std::vector<const TableColumn*> shown = fitting(columns, width);
  FittedTable table;
  for (const TableColumn& column : columns)
    if (std::find(shown.begin(), shown.end(), &column) == shown.end())
      table.hidden.push_back(column.head);
  const std::size_t rows = columns.front().cells.size() + 1;
  for (std::size_t row = 0; row < rows; ++row) {
    std::string line;
    for (const TableColumn* column : shown) {
      if (column != shown.front()) line += std::string(kGap, ' ');
      line +=
          pad(row == 0 ? column->head : column->cells[row - 1], width_of(*column), column->left);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    table.text += line + "\n";
  }
  return table;
}

std::string hidden_note(const std::vector<std::string>& hidden) {
  if (hidden.empty()) return "";
  return fmt::format("not shown: {} (--wide shows all)\n", fmt::join(hidden, ", "));
}

std::string fold_lines(std::string_view text, int width) {
  std::string folded;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    folded += fold_line(text.substr(0, end), width);
    if (end < text.size()) folded += "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return folded;
}

}  // namespace bubblescope
