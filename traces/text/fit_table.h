// Tables and lines that fit a terminal: the least important columns are left out, and nothing
// wraps.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// A column of a table: its head and one cell per row.
struct TableColumn {
  std::string head;
  std::vector<std::string> cells;
  bool left = false;   ///< its cells begin below each other; else they end so
  int importance = 0;  ///< of columns in a table too wide, the least goes first; of equals the last
  bool is_part = false;  ///< one of the columns that add up to another one
};

inline constexpr int kAlwaysShown = 1000;  ///< the importance of columns that are never left out

struct FittedTable {
  std::string text;                 ///< the heads, then a line per row
  std::vector<std::string> hidden;  ///< heads of the columns that were left out, in order
};

/// The column that stands for all parts with these heads together.
using FoldParts = std::function<TableColumn(const std::vector<std::string>& heads)>;

/// All columns, or those that fit `width`. Columns whose rows are all alike go first: what tells
/// rows apart stays. With `fold`, the parts that are left out appear as one column, so that every
/// row still adds up.
FittedTable draw_table(const std::vector<TableColumn>& columns, std::optional<int> width = {},
                       const FoldParts& fold = {});

/// "not shown: at, sends (--wide shows them)\n"; empty where nothing is hidden.
std::string describe_hidden(const std::vector<std::string>& hidden);

/// Breaks lines wider than `width` between words. Continuation lines are indented to the first word
/// after the label, which ends at two or more spaces, or else by two columns.
std::string fold_lines(std::string_view text, int width);

}  // namespace bubblescope::traces
