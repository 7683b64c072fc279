// The page of --html without its data: traces/html/, put into the program when it is built.
#pragma once

#include <string_view>

namespace bubblescope {

/// page.html, with @TITLE@, @STYLE@, @DATA@ and @SCRIPT@ where these go.
std::string_view html_skeleton();

/// page.css.
std::string_view html_style();

/// The scripts, in the order of their names.
std::string_view html_script();

}  // namespace bubblescope
