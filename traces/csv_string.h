// Texts as cells of csv files.
#pragma once

#include <string>

namespace bubblescope {

/// In quotes, with those inside doubled.
inline std::string csv_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) quoted += letter == '"' ? "\"\"" : std::string(1, letter);
  return quoted + '"';
}

/// The same for a heading, which needs no quotes where it has no letters that csv knows.
inline std::string csv_heading(const std::string& text) {
  return text.find_first_of(",\"\n") == std::string::npos ? text : csv_string(text);
}

}  // namespace bubblescope
