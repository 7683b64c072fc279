// Exact decimal parsing, without floating point between the text and the value.
#include "sim/ir/units.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <utility>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "sim/ir/plain_text.h"
#include "sim/ir/range.h"

namespace bubblescope::inline sim {

namespace {

constexpr int kMaxDigits = 26;
constexpr int kMaxExponent = 999;  // beyond it the value is too large, or 0
constexpr Millionths kMaxMillionths = Millionths{1} << 52;
constexpr std::int64_t kMaxDuration = std::int64_t{100} * 24 * 3600 * 1'000'000'000;

/// A message is a C string, which a NUL of a file would end.
std::string quoted(std::string_view text) { return "'" + escape_line(text) + "'"; }

__extension__ using Wide = unsigned __int128;  // 26 digits times 2^40 need 127 bits

/// digits * 10^exponent.
struct Decimal {
  Wide digits = 0;
  int exponent = 0;
};

/// Removes a decimal number from the front of `text`: digits, an optional fraction and exponent.
std::optional<Decimal> take_decimal(std::string_view& text) {
  Decimal decimal;
  int count = 0;
  int zeros = 0;  // trailing zeros of the fraction so far
  bool fraction = false;
  std::size_t at = 0;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !fraction)); ++at) {
    if (text[at] == '.') {
      fraction = true;
      continue;
    }
    if (fraction && text[at] == '0') {
      // They count only if another digit follows.
      ++zeros;
      continue;
    }
    for (; zeros > 0 && count <= kMaxDigits; --zeros) {
      decimal.digits *= 10;
      --decimal.exponent;
      if (decimal.digits > 0) ++count;
    }
    if (zeros > 0 || count >= kMaxDigits)
      throw Error(quoted(text) + " has more than " + counted(kMaxDigits, "digit") +
                  "; write fewer");
    decimal.digits = decimal.digits * 10 + static_cast<Wide>(text[at] - '0');
    if (fraction) --decimal.exponent;
    if (decimal.digits > 0) ++count;
  }
  if (at == 0 || (fraction && at == 1)) return {};
  if (at + 1 < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const bool minus = text[at + 1] == '-';
    std::size_t digit = at + 1 + (minus || text[at + 1] == '+' ? 1 : 0);
    if (digit >= text.size() || !is_digit(text[digit])) return {};
    int exponent = 0;
    for (; digit < text.size() && is_digit(text[digit]); ++digit) {
      exponent = std::min(kMaxExponent, exponent * 10 + (text[digit] - '0'));
    }
    decimal.exponent += minus ? -exponent : exponent;
    at = digit;
  }
  text.remove_prefix(at);
  return decimal;
}

/// digits * 10^exponent * unit, rounded to the nearest integer; empty if it exceeds `limit`.
std::optional<std::int64_t> to_integer(Decimal decimal, std::int64_t limit, std::int64_t unit = 1) {
  const auto max_value = static_cast<Wide>(limit);
  Wide value = decimal.digits * static_cast<Wide>(unit);
  for (; decimal.exponent > 0 && value != 0; --decimal.exponent) {
    if (value > max_value / 10) return {};
    value *= 10;
  }
  Wide remainder = 0;
  for (; decimal.exponent < 0 && value != 0; ++decimal.exponent) {
    remainder = value % 10;
    value /= 10;
  }
  if (decimal.exponent == 0 && remainder >= 5) ++value;
  if (value > max_value) return {};
  return static_cast<std::int64_t>(value);
}

bool equals_in_any_case(std::string_view left, std::string_view right) {
  const auto lower = [](char sign) { return std::tolower(static_cast<unsigned char>(sign)); };
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [&](char a, char b) { return lower(a) == lower(b); });
}

}  // namespace

Nanos parse_duration(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, int>, 5> kUnits{
      {{"", 6}, {"ns", 0}, {"us", 3}, {"ms", 6}, {"s", 9}}};
  std::string_view rest = text;
  if (std::optional<Decimal> decimal = take_decimal(rest)) {
    for (const auto& [unit, exponent] : kUnits)
      if (rest == unit) {
        decimal->exponent += exponent;
        if (const auto nanos = to_integer(*decimal, kMaxDuration)) return *nanos;
        throw Error(quoted(text) + " is longer than 100 days");
      }
  }
  throw Error(quoted(text) +
              " is not a duration; write a number with ns, us, ms or s, such as 18.5us (a bare "
              "number is ms)");
}

Bytes parse_bytes(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 10> kUnits{
      {{"", 1},
       {"B", 1},
       {"kB", 1'000},
       {"MB", 1'000'000},
       {"GB", 1'000'000'000},
       {"TB", 1'000'000'000'000},
       {"KiB", std::int64_t{1} << 10},
       {"MiB", std::int64_t{1} << 20},
       {"GiB", std::int64_t{1} << 30},
       {"TiB", std::int64_t{1} << 40}}};
  std::string_view rest = text;
  if (const std::optional<Decimal> decimal = take_decimal(rest)) {
    for (const auto& [unit, size] : kUnits)
      if (rest == unit) {
        if (const auto bytes = to_integer(*decimal, kMaxBytes, size)) return *bytes;
        throw Error(quoted(text) + " is more than 2^60 bytes");
      }
  }
  for (const auto& [unit, size] : kUnits)
    if (!unit.empty() && equals_in_any_case(rest, unit))
      throw Error(quoted(text) + " is not a size; write the unit as " + std::string(unit));
  throw Error(
      quoted(text) +
      " is not a size; write a number with B, kB, MB, GB or KiB, MiB, GiB (a bare number is "
      "bytes)");
}

Millionths parse_millionths(std::string_view text) {
  std::string_view rest = text;
  const bool minus = !rest.empty() && rest.front() == '-';
  if (minus) rest.remove_prefix(1);
  std::optional<Decimal> decimal = take_decimal(rest);
  if (decimal && rest.empty()) {
    decimal->exponent += 6;
    if (const auto value = to_integer(*decimal, kMaxMillionths)) return minus ? -*value : *value;
    throw Error(quoted(text) + " is too large; " + std::to_string(kMaxMillionths / kWhole) +
                " is the limit");
  }
  throw Error(quoted(text) + " is not an amount; write a plain number, such as 2 or -0.5");
}

std::string format_millionths(Millionths amount) {
  std::string text = (amount < 0 ? "-" : "") + std::to_string(std::abs(amount / kWhole));
  std::string decimals = std::to_string(std::abs(amount % kWhole));
  decimals.insert(0, 6 - decimals.size(), '0');
  decimals.erase(decimals.find_last_not_of('0') + 1);
  return decimals.empty() ? text : text + '.' + decimals;
}

std::string to_text(Nanos duration) {
  if (duration < 0) return "-" + to_text(-duration);
  static constexpr std::array<std::pair<Nanos, std::string_view>, 4> kUnits{
      {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}, {1, " ns"}}};
  if (duration == 0) return "0 ms";
  for (const auto& [size, unit] : kUnits) {
    if (duration < size) continue;
    std::string text = std::to_string(duration / size);
    std::string fraction = std::to_string(size + duration % size).substr(1);
    while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
    if (!fraction.empty()) text += "." + fraction;
    return text + std::string(unit);
  }
  return "0 ms";
}

}  // namespace bubblescope::inline sim
