// Parsing of whole numbers.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace bubblescope::inline sim {

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
