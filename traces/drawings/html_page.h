// The html page without its data: traces/drawings/html/, embedded in the program when it is
// built.
#pragma once

#include <span>
#include <string_view>

namespace bubblescope::traces {

/// Returns the file page.html, with the placeholders @TITLE@, @STYLE@, @DATA@ and @SCRIPT@.
std::string_view html_skeleton();

/// Returns the file page.css.
std::string_view html_style();

/// The parts of the script: the files of scripts in the order of their names, after a line that
/// makes them strict.
std::span<const std::string_view> html_scripts();

}  // namespace bubblescope::traces
