// Splits text at commas, then at equals signs.
#include "tools/flags/key_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "sim/ir/number.h"
#include "tools/flags/words.h"

namespace bubblescope::tools {

KeyValues::KeyValues(std::string_view text, std::initializer_list<const char*> keys) : text_(text) {
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const std::string& part : split(text_, ',')) {
    const std::size_t equals = part.find('=');
    const std::string key = part.substr(0, equals);
    if (equals == std::string::npos && nearest_names(key, known).empty())
      throw Error(fmt::format("'{}' names no key; write {}=...", key, fmt::join(known, "=...,")));
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      const std::string hint = suggestion(nearest_names(key, known));
      throw Error(fmt::format("'{}' has no key '{}'{}", text_, key,
                              hint.empty() ? "; known are " + join(known, ", ") : hint));
    }
    if (equals == std::string::npos || equals + 1 == part.size())
      throw Error(fmt::format("'{}' lacks the value of {}; write {}=...", text_, key, key));
    if (!values_.emplace(key, part.substr(equals + 1)).second)
      throw Error(fmt::format("'{}' gives {} twice; remove one", text_, key));
  }
}

std::optional<std::string> KeyValues::find(const std::string& key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return {};
  return found->second;
}

std::string KeyValues::at(const std::string& key) const {
  if (const auto value = find(key)) return *value;
  throw Error(fmt::format("'{}' lacks {}; write {}=...", text_, key, key));
}

std::optional<std::int32_t> KeyValues::integer(const std::string& key,
                                               std::int32_t min_value) const {
  const auto value = find(key);
  if (!value) return {};
  const auto number = parse_number<std::int32_t>(*value);
  if (!number || *number < min_value)
    throw Error(fmt::format("{}={}: must be a whole number from {} to {}", key, *value, min_value,
                            std::numeric_limits<std::int32_t>::max()));
  return number;
}

std::optional<double> KeyValues::positive_number(const std::string& key) const {
  const auto value = find(key);
  if (!value) return {};
  const auto number = parse_number<double>(*value);
  constexpr double kMaxValue = 1e9;
  if (!number || !(*number > 0) || *number > kMaxValue)
    throw Error(
        fmt::format("{}={}: must be a number above 0, and {:.0f} at most", key, *value, kMaxValue));
  return number;
}

double parse_fraction(std::string_view text, double max_value) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number<double>(percent ? text.substr(0, text.size() - 1) : text);
  const double fraction = number ? *number / (percent ? 100 : 1) : -1;
  if (!(fraction >= 0 && fraction <= max_value))
    throw Error(
        fmt::format("'{}' must be a fraction from 0 to {}, such as 0.05 or 5%", text, max_value));
  return fraction;
}

}  // namespace bubblescope::tools
