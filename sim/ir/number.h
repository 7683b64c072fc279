// Recognizes digits and parses whole numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace bubblescope::inline sim {

/// Whether it is one of 0 to 9, whatever the locale.
constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// The number that the whole text spells; empty for anything else and for overflow.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [last, fault] = std::from_chars(text.data(), end, number);
  if (fault != std::errc{} || last != end) return {};
  return number;
}

}  // namespace bubblescope::inline sim
