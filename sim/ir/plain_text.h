// Plain text: escapes whatever a terminal, a picture or a spreadsheet would interpret.
//
//   "a<ESC>[2Jb"  ->  a\x1b[2Jb
//
// Control characters (C0, DEL, C1), invalid UTF-8, line separators, marks that change the writing
// direction and blanks other than the space become escapes; everything else stays as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bubblescope::inline sim {

/// The length of the UTF-8 sequence at the front of a non-empty text, or 0 if it is invalid:
/// overlong forms, surrogates and code points above U+10FFFF are.
std::size_t utf8_length(std::string_view text);

/// The code point of one UTF-8 sequence.
char32_t code_point(std::string_view letter);

/// Whether the UTF-8 sequence `letter` is a control character, or a blank other than the space,
/// which would look like it.
bool is_control(std::string_view letter);

/// The text as one line: line ends and tabs are escaped too.
std::string escape_line(std::string_view text);

/// The text as lines: '\n' and '\t' stay.
std::string escape_lines(std::string_view text);

/// The front of a text: at most `max_bytes` bytes and no partial character; "..." marks the cut.
std::string shorten(std::string_view text, std::size_t max_bytes);

/// Escapes a message that quotes input: the result is plain, and every quotation and word has at
/// most 200 characters.
std::string escape_message(std::string_view message);

}  // namespace bubblescope::inline sim
