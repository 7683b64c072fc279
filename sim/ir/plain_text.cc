// One pass over UTF-8; printable ASCII is copied in runs.
#include "sim/ir/plain_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace bubblescope::inline sim {

namespace {

constexpr std::size_t kMaxQuotation = 200;
constexpr std::size_t kMaxMessageText = 10'000;

unsigned char byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_printable_ascii(char letter) { return letter >= ' ' && letter <= '~'; }

std::string escape_of(std::string_view letter) {
  if (letter.size() > 1) return fmt::format("\\u{:04x}", static_cast<unsigned>(code_point(letter)));
  if (letter == "\n") return "\\n";
  if (letter == "\r") return "\\r";
  if (letter == "\t") return "\\t";
  return fmt::format("\\x{:02x}", byte_at(letter, 0));
}

std::string escaped(std::string_view text, std::string_view kept) {
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const auto stop = std::find_if_not(text.begin(), text.end(), is_printable_ascii);
    plain.append(text.begin(), stop);
    text.remove_prefix(static_cast<std::size_t>(stop - text.begin()));
    if (text.empty()) break;
    const std::size_t length = utf8_length(text);
    const std::string_view letter = text.substr(0, std::max<std::size_t>(1, length));
    const bool stays = length > 0 && (!is_control(letter) || kept.find(letter) != kept.npos);
    if (stays)
      plain += letter;
    else
      plain += escape_of(letter);
    text.remove_prefix(letter.size());
  }
  return plain;
}

bool is_blank(char letter) { return letter == ' ' || letter == '\n' || letter == '\t'; }

/// Returns the quotation, word or single character at the front of a text.
std::string_view first_piece(std::string_view text) {
  if (is_blank(text[0]) || text[0] == '(') return text.substr(0, 1);
  if (text[0] == '\'' || text[0] == '"') {
    const std::size_t close = text.find(text[0], 1);
    if (close != text.npos) return text.substr(0, close + 1);
  }
  return text.substr(0, text.find_first_of(" \n\t"));
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const unsigned lead = byte_at(text, 0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at)
    if ((byte_at(text, at) & 0xC0) != 0x80) return 0;
  const unsigned second = byte_at(text, 1);
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool beyond = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  return overlong || beyond ? 0 : length;
}

char32_t code_point(std::string_view letter) {
  constexpr unsigned kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = byte_at(letter, 0) & kLeadBits[letter.size()];
  for (std::size_t at = 1; at < letter.size(); ++at)
    code = (code << 6) | (byte_at(letter, at) & 0x3F);
  return code;
}

bool is_control(std::string_view letter) {
  const char32_t code = code_point(letter);
  return code < 0x20 || (code >= 0x7F && code <= 0xA0) || code == 0x61C || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200F) || (code >= 0x2028 && code <= 0x202F) ||
         (code >= 0x205F && code <= 0x2060) || (code >= 0x2066 && code <= 0x2069) ||
         code == 0x3000 || code == 0xFEFF || (code >= 0xE0000 && code <= 0xE007F);
}

std::string escape_line(std::string_view text) { return escaped(text, ""); }

std::string escape_lines(std::string_view text) { return escaped(text, "\n\t"); }

std::string shorten(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t length = max_bytes;
  while (length > 0 && (byte_at(text, length) & 0xC0) == 0x80) --length;
  return std::string(text.substr(0, length)) + "...";
}

std::string escape_message(std::string_view message) {
  const std::string plain = shorten(escape_lines(message), kMaxMessageText);
  std::string cut;
  for (std::string_view rest = plain; !rest.empty();) {
    const std::string_view piece = first_piece(rest);
    cut += shorten(piece, kMaxQuotation);
    const bool is_quotation = piece[0] == '\'' || piece[0] == '"';
    if (piece.size() > kMaxQuotation && is_quotation) cut += piece[0];
    rest.remove_prefix(piece.size());
  }
  return cut;
}

}  // namespace bubblescope::inline sim
