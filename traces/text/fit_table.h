// Fits tables and text to the width of a terminal. Tables lose their least important columns
// instead of wrapping.
#pragma once

#include <cstddef>
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
  bool left = false;     ///< aligned to the left; otherwise to the right
  int importance = 0;    ///< the least important is left out first; ties: the last one
  bool is_part = false;  ///< one of several columns that add up to another
};

inline constexpr int kAlwaysShown = 1000;  ///< the importance of columns that are never left out

struct FittedTable {
  std::string text;                 ///< the heads, then a line per row
  std::vector<std::string> hidden;  ///< heads of the columns that were left out, in order
};

/// Returns the column that replaces all parts with these heads.
using FoldParts = std::function<TableColumn(const std::vector<std::string>& heads)>;

/// Draws all columns, or those that fit `width`. Columns with the same cell in every row are left
/// out first, so that what distinguishes the rows stays. With `fold`, the parts that are left out
/// become one column, so that every row still adds up.
FittedTable draw_table(const std::vector<TableColumn>& columns, std::optional<int> width = {},
                       const FoldParts& fold = {});

/// Writes which columns are hidden: "not shown: at, sends (`wide` shows all)\n". Empty if none is.
std::string describe_hidden(const std::vector<std::string>& hidden);

/// Breaks lines wider than `width` between words. Continuation lines are indented to the first word
/// after the label, which ends at two or more spaces within `max_label` columns; without a label as
/// their line is, by at least two columns.
std::string fold_lines(std::string_view text, int width, std::size_t max_label = 20);

}  // namespace bubblescope::traces
