// The --html page without its data: traces/drawings/html/, embedded in the program when it is
// built.
#pragma once

#include <string_view>

namespace bubblescope::traces {

/// page.html, with the placeholders @TITLE@, @STYLE@, @DATA@ and @SCRIPT@.
std::string_view html_skeleton();

/// page.css.
std::string_view html_style();

/// The scripts, in the order of their names.
std::string_view html_script();

}  // namespace bubblescope::traces
