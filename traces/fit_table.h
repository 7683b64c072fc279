// Tables and lines that fit a terminal: the least important columns are left out, and nothing
// wraps.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope {

/// A column of a table: its head and one cell per row.
struct TableColumn {
  std::string head;
  std::vector<std::string> cells;
  bool left = false;   ///< aligned left; otherwise right
  int importance = 0;  ///< the least important column is left out first; of equals the last
};

inline constexpr int kAlwaysShown = 1000;  ///< the importance of columns that are never left out

struct FittedTable {
  std::string text;                 ///< the heads, then a line per row
  std::vector<std::string> hidden;  ///< heads of the columns that were left out, in order
};

/// Draws all columns, or those that fit into `width`.
FittedTable draw_table(const std::vector<TableColumn>& columns, std::optional<int> width = {});

/// "not shown: at, sends (--wide shows them)\n"; empty where nothing is hidden.
std::string hidden_note(const std::vector<std::string>& hidden);

/// Breaks lines wider than `width` between words. Continuation lines are indented to the first word
/// after the label, which ends at two or more spaces, or else by two columns.
std::string fold_lines(std::string_view text, int width);

}  // namespace bubblescope
