// Values that hold several words.
#pragma once

#include <string>
#include <vector>

namespace bubblescope::tools {

/// The parts between the signs. An empty text is one empty part; a sign at the end is followed by
/// none.
std::vector<std::string> split(const std::string& text, char sign);

/// Returns a text such as "1f1b|zb-h1".
std::string join(const std::vector<std::string>& words, const std::string& between);

/// Without blanks at its ends.
std::string trim(const std::string& text);

std::string to_lower(std::string text);

}  // namespace bubblescope::tools
