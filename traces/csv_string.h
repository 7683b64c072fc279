// Texts as cells of csv files, which spreadsheets show and never run.
#pragma once

#include <string>
#include <string_view>

namespace bubblescope {

/// In quotes, with those inside doubled and control characters escaped. A text that a spreadsheet
/// would take for a formula (= + - @ first, but no number) gets an apostrophe in front of it.
std::string csv_string(std::string_view text);

/// The same, but in quotes only where it must be.
std::string csv_field(std::string_view text);

}  // namespace bubblescope
