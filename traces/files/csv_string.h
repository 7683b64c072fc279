// Text as cells of csv files that are safe to open in a spreadsheet.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope::traces {

/// Quotes a text, doubling quotes inside it and escaping control characters. A text that a
/// spreadsheet would take for a formula (it begins with = + - @ and is no number) gets an
/// apostrophe in front.
std::string csv_string(std::string_view text);

/// The same, but quoted only where necessary.
std::string csv_field(std::string_view text);

}  // namespace bubblescope::traces
