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

/// The same, but only where it must be.
inline std::string csv_field(const std::string& text) {
  return text.find_first_of(",\"\r\n") == std::string::npos ? text : csv_string(text);
}

}  // namespace bubblescope
