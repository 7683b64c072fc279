// Reads JSON values strictly.
#include "traces/json/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/ir/counted.h"
#include "sim/ir/error.h"
#include "sim/ir/nearest_names.h"
#include "traces/files/quote.h"

namespace bubblescope::traces {

namespace {

using Json = nlohmann::json;

}  // namespace

std::string JsonNode::pointer() const {
  if (parent_ == nullptr) return "";
  return parent_->pointer() + '/' + (key_ != nullptr ? key_ : std::to_string(index_));
}

void JsonNode::refuse(const std::string& what) const {
  throw Error(fmt::format("{}: {}{}{}", *file_, pointer(), parent_ == nullptr ? "" : ": ", what));
}

void JsonNode::expect_keys(std::initializer_list<JsonKey> keys) const {
  if (!value_->is_object())
    refuse("must be an object, as in {\"" + std::string(keys.begin()->name) + "\": ...}");
  std::vector<std::string> known;
  for (const JsonKey& each : keys) known.emplace_back(each.name);
  for (const auto& entry : value_->items()) {
    const std::string& key = entry.key();
    const bool is_known = std::any_of(keys.begin(), keys.end(), [&key](const JsonKey& each) {
      return key == each.name || (each.old_name != nullptr && key == each.old_name);
    });
    if (is_known) continue;
    const std::string hint = suggestion(nearest_names(key, known));
    refuse(
        fmt::format("unknown key {}{}", quote(key),
                    hint.empty() ? fmt::format("; known are {}", fmt::join(known, ", ")) : hint));
  }
}

void JsonNode::expect_format(const std::string& format) const {
  const std::optional<JsonNode> node = value_->is_object() ? find("format") : std::nullopt;
  if (!node) refuse(fmt::format("must be an object with \"format\":\"{}\"", format));
  const std::string& found = node->text();
  if (found == format) return;
  const std::string name = format.substr(0, format.find('/') + 1);
  node->refuse(found.starts_with(name)
                   ? fmt::format("is {}, but this program reads version '{}'; update it",
                                 quote(found), format)
                   : fmt::format("is {}, but '{}' is needed here", quote(found), format));
}

std::vector<JsonNode> JsonNode::members() const& {
  std::vector<JsonNode> found;
  if (!value_->is_object()) return found;
  for (const auto& [key, value] : value_->get_ref<const Json::object_t&>())
    found.push_back(JsonNode(value, *this, key.c_str(), 0));
  return found;
}

JsonNode JsonNode::at(JsonKey key) const& {
  if (auto node = find(key)) return *node;
  refuse(fmt::format("lacks the key '{}'; add it", key.name));
}

std::optional<JsonNode> JsonNode::find(JsonKey key) const& {
  if (!value_->is_object()) refuse(fmt::format("must be an object with the key '{}'", key.name));
  const bool has_name = value_->contains(key.name);
  const bool has_old_name = key.old_name != nullptr && value_->contains(key.old_name);
  if (has_name && has_old_name)
    refuse(fmt::format("has '{}' and also '{}', its old name; remove '{}'", key.name, key.old_name,
                       key.old_name));
  if (!has_name && !has_old_name) return {};
  const char* const found = has_name ? key.name : key.old_name;
  return JsonNode(*value_->find(found), *this, found, 0);
}

std::size_t JsonNode::size() const {
  if (!value_->is_array()) refuse("must be an array");
  return value_->size();
}

JsonNode JsonNode::operator[](std::size_t index) const& {
  if (index >= size()) refuse(fmt::format("has {}; add entry {}", counted(size(), "entry"), index));
  return JsonNode((*value_)[index], *this, nullptr, index);
}

std::int64_t JsonNode::integer(std::int64_t min_value, std::int64_t max_value) const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() ||
                     value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t number = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || number < min_value || number > max_value)
    refuse(fmt::format("must be a whole number from {} to {}", min_value, max_value));
  return number;
}

bool JsonNode::is_null() const { return value_->is_null(); }

bool JsonNode::is_array() const { return value_->is_array(); }

bool JsonNode::is_text() const { return value_->is_string(); }

bool JsonNode::is_object() const { return value_->is_object(); }

bool JsonNode::is_integer() const { return value_->is_number_integer(); }

std::optional<double> JsonNode::number() const {
  if (!value_->is_number()) return {};
  return value_->get<double>();
}

std::optional<std::uint64_t> JsonNode::unsigned_integer() const {
  if (!value_->is_number_unsigned()) return {};
  return value_->get<std::uint64_t>();
}

double JsonNode::positive_number() const {
  const double number = value_->is_number() ? value_->get<double>() : 0;
  if (!(number > 0) || !std::isfinite(number)) refuse("must be a number above 0");
  return number;
}

bool JsonNode::boolean() const {
  if (!value_->is_boolean()) refuse("must be true or false");
  return value_->get<bool>();
}

const std::string& JsonNode::text() const {
  if (!value_->is_string()) refuse("must be a string");
  return value_->get_ref<const std::string&>();
}

namespace {

/// A quantity as the command line takes it: strings unchanged, which must have a unit, and numbers
/// in decimal.
std::string format_quantity(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const bool is_bare = text.find_first_not_of("0123456789.eE+- ") == text.npos;
    if (is_bare && text.find_first_of("123456789") != text.npos)  // 0 is 0 in any unit
      node.refuse(fmt::format("{} has no unit; give it one, or write a number without quotes",
                              quote(text)));
    return text;
  }
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_number()) return value.dump();
  node.refuse("must be a number, or a string with a number and a unit");
}

/// Parses the quantity with `parse`, and adds the place in the file to its error.
template <class Parse>
std::int64_t parse_quantity(const JsonNode& node, Parse parse) {
  const std::string text = format_quantity(node);
  try {
    return parse(text);
  } catch (const Error& error) {
    node.refuse(error.what());
  }
}

/// Milliseconds in whole nanoseconds, where the rounding error of a double cannot change them;
/// numbers near half a nanosecond are left to parse_duration(), which is exact.
std::optional<Nanos> round_milliseconds(double milliseconds) {
  constexpr double kMaxExact = 1e12;  // its neighbours in a double differ by 0.0001
  const double nanos = milliseconds * 1e6;
  if (!(nanos >= 0 && nanos < kMaxExact) || std::abs(nanos - std::rint(nanos)) > 0.4) return {};
  return static_cast<Nanos>(std::rint(nanos));
}

}  // namespace

Nanos JsonNode::duration() const {
  if (const std::optional<double> milliseconds = number())
    if (const std::optional<Nanos> rounded = round_milliseconds(*milliseconds)) return *rounded;
  return parse_quantity(*this, parse_duration);
}

Bytes JsonNode::bytes() const { return parse_quantity(*this, parse_bytes); }

JsonFile::JsonFile(std::string_view text, const std::string& file)
    : json_(std::make_unique<const Json>(parse_json(text, file))), file_(file) {}

JsonFile::~JsonFile() = default;

}  // namespace bubblescope::traces
