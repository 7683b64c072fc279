// Text as cells of csv files that are safe to open in a spreadsheet, and cells read back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bubblescope::traces {

/// Quotes a text, doubling quotes inside it and escaping control characters. A text that a
/// spreadsheet would take for a formula (it begins with = + - @ and is not a number) gets an
/// apostrophe in front.
std::string csv_string(std::string_view text);

/// Does the same as csv_string(), but quotes only where necessary.
std::string csv_field(std::string_view text);

/// The cells of a line, without its end. A quoted cell may contain commas; its quotes are left out.
std::vector<std::string> split_csv_line(std::string_view line);

}  // namespace bubblescope::traces
