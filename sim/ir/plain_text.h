// Text from outside as text: what a terminal, a picture or a spreadsheet would act on is shown.
//
//   "a<ESC>[2Jb"  ->  a\x1b[2Jb
//
// Control characters (C0, DEL, C1), bytes that are no UTF-8, line separators and the marks that
// turn the direction of writing become escapes; everything else stays as it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bubblescope {

/// The length of the UTF-8 sequence at the front of a text that is not empty, 0 where there is
/// none. Overlong forms, surrogates and code points above U+10FFFF are none.
std::size_t utf8_length(std::string_view text);

/// The code point of one UTF-8 sequence.
char32_t code_point(std::string_view letter);

/// Whether the UTF-8 sequence `letter` acts instead of being shown.
bool is_control(std::string_view letter);

/// The text as one line: also its line ends and tabs are escaped.
std::string plain_line(std::string_view text);

/// The text as lines: '\n' and '\t' stay.
std::string plain_lines(std::string_view text);

/// The front of a text, of at most `most` bytes and never half a letter; "..." where it was cut.
std::string shortened(std::string_view text, std::size_t most);

/// A message that quotes input: plain, and no quotation or word in it longer than 200 characters.
std::string plain_message(std::string_view message);

}  // namespace bubblescope
