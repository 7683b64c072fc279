// Escapes text for json and formats its numbers.
#include "traces/json/json_string.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/ir/plain_text.h"

namespace bubblescope::traces {

namespace {

/// Writes a letter as "\u202e", and one above U+FFFF as two surrogates.
std::string json_escape(std::string_view letter) {
  const auto code = static_cast<unsigned>(code_point(letter));
  if (code < 0x10000) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\u{:04x}\\u{:04x}", 0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF));
}

}  // namespace

std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text;
}

std::string json_string(std::string_view text, bool ascii) {
  std::string quoted = "\"";
  while (!text.empty()) {
    const char letter = text.front();
    const bool is_ascii = letter >= ' ' && letter <= '~';
    const std::size_t length = is_ascii ? 1 : utf8_length(text);
    const std::string_view whole = text.substr(0, length);
    if (letter == '"' || letter == '\\') quoted += '\\';
    if (letter == '\n')
      quoted += "\\n";
    else if (length == 0)
      quoted += ascii ? "\\ufffd" : "\xEF\xBF\xBD";
    else if (!is_ascii && (ascii || is_control(whole)))
      quoted += json_escape(whole);
    else
      quoted += whole;
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return quoted + '"';
}

}  // namespace bubblescope::traces
