// Quotes text for csv, and splits lines.
#include "traces/files/csv_string.h"

#include "sim/ir/number.h"
#include "sim/ir/plain_text.h"

namespace bubblescope::traces {

namespace {

bool is_formula(std::string_view text) {
  constexpr std::string_view kStarts = "=+-@\t\r";
  if (text.empty() || kStarts.find(text.front()) == kStarts.npos) return false;
  const bool is_signed = text.front() == '-' || text.front() == '+';
  return !(is_signed && parse_number<double>(text.substr(1)));
}

/// Makes the text a single line, and marks it as text where a spreadsheet would evaluate it.
std::string sanitize(std::string_view text) {
  return (is_formula(text) ? "'" : "") + escape_line(text);
}

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"') result += '"';
    result += letter;
  }
  return result + '"';
}

}  // namespace

std::string csv_string(std::string_view text) { return in_quotes(sanitize(text)); }

std::string csv_field(std::string_view text) {
  const std::string field = sanitize(text);
  const bool must = is_formula(text) || field.find_first_of(",\"") != field.npos;
  return must ? in_quotes(field) : field;
}

std::vector<std::string> split_csv_line(std::string_view line) {
  std::vector<std::string> cells{""};
  bool quoted = false;
  for (const char letter : line) {
    if (letter == '"')
      quoted = !quoted;
    else if (letter == ',' && !quoted)
      cells.emplace_back();
    else if (letter != '\r')
      cells.back() += letter;
  }
  return cells;
}

}  // namespace bubblescope::traces
