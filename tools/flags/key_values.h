// Flags with several keys in one value: `rank=2,factor=1.2`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace bubblescope::tools {

/// The values by key.
class KeyValues {
 public:
  /// Throws Error for an unknown or duplicate key, and for a part without a value.
  KeyValues(std::string_view text, std::initializer_list<const char*> keys);

  std::optional<std::string> find(const std::string& key) const;
  /// Throws Error where the key is missing or its value has the wrong type.
  std::string at(const std::string& key) const;
  std::optional<std::int32_t> integer(const std::string& key, std::int32_t min_value) const;
  std::optional<double> positive_number(const std::string& key) const;

 private:
  std::string text_;
  std::map<std::string, std::string> values_;
};

/// Parses "5%" or "0.05" as a fraction. Throws Error for anything else, and outside 0 to
/// `max_value`.
double parse_fraction(std::string_view text, double max_value);

}  // namespace bubblescope::tools
