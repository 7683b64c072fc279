// Detects what the terminal can show, and fits text to it.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "tools/flags/output_format.h"
#include "traces/drawings/drawing.h"

namespace bubblescope::tools {

/// Returns width and colour of stdout: colour on a terminal unless NO_COLOR is set; 80 columns
/// elsewhere, and under mpirun, whose terminals are not where the output ends up.
traces::DrawOptions detect_draw_options();

/// Prints whole lines as results. With `folds`, those that are wider than the terminal are folded.
void print_fitted(std::string_view lines, bool folds);

/// Prints a result in this format. Text is folded on a terminal, the other formats never are.
void print_result(std::string_view result, OutputFormat format);

/// Formats a text and prints it as print_fitted() does, folded on a terminal.
template <class... Values>
void print_folded(fmt::format_string<Values...> format, Values&&... values) {
  print_fitted(fmt::format(format, std::forward<Values>(values)...), detect_draw_options().fit);
}

}  // namespace bubblescope::tools
