// Strict access to json values.
#include "traces/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "traces/cell.h"

namespace bubblescope {

namespace {

/// "file:line:column" of the byte at which the parser stood.
std::string place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, line, before.size() - line_begin + 1);
}

/// Sees every key of every object that is being parsed.
class KeyWatch {
 public:
  bool operator()(int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second && !repeated_) repeated_ = key;
    }
    return true;
  }
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  std::vector<std::set<std::string>> keys_;  ///< of the objects that are open
  std::optional<std::string> repeated_;
};

/// What nlohmann says behind "[json.exception...] parse error at line 1, column 2: ".
std::string reason_of(const std::exception& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
  if (what.starts_with("parse error at ")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what);
}

}  // namespace

Error invalid_json(std::string_view text, std::size_t byte, const std::exception& refused,
                   const std::string& file) {
  return Error(
      fmt::format("{}: no valid json: {}", place_of(text, byte, file), reason_of(refused)));
}

Json parse_json(std::string_view text, const std::string& file) {
  KeyWatch watch;
  try {
    Json json = Json::parse(text.begin(), text.end(), std::ref(watch));
    if (watch.repeated())
      throw Error(fmt::format("{}: the key {} stands twice in one object; remove one", file,
                              quote(*watch.repeated())));
    return json;
  } catch (const Json::parse_error& error) {
    throw invalid_json(text, error.byte, error, file);
  } catch (const Json::exception& error) {  // a number that no double holds
    throw Error(fmt::format("{}: no valid json: {}", file, reason_of(error)));
  }
}

std::string JsonNode::pointer() const {
  if (parent_ == nullptr) return "";
  return parent_->pointer() + '/' + (key_ != nullptr ? key_ : std::to_string(index_));
}

void JsonNode::refuse(const std::string& what) const {
  throw Error(fmt::format("{}: {}{}{}", *file_, pointer(), parent_ == nullptr ? "" : ": ", what));
}

void JsonNode::expect_keys(std::initializer_list<const char*> keys) const {
  if (!value_->is_object())
    refuse("must be an object, as in {\"" + std::string(*keys.begin()) + "\": ...}");
  const std::vector<std::string> known(keys.begin(), keys.end());
  for (const auto& [key, _] : value_->items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = nearest_name(key, known);
    refuse(fmt::format("unknown key {}; {}", quote(key),
                       nearest.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                                       : fmt::format("did you mean '{}'?", nearest)));
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

JsonNode JsonNode::at(const char* key) const& {
  if (auto node = find(key)) return *node;
  refuse(fmt::format("lacks the key '{}'; add it", key));
}

std::optional<JsonNode> JsonNode::find(const char* key) const& {
  if (!value_->is_object()) refuse(fmt::format("must be an object with the key '{}'", key));
  const auto member = value_->find(key);
  if (member == value_->end()) return {};
  return JsonNode(*member, *this, key, 0);
}

std::size_t JsonNode::size() const {
  if (!value_->is_array()) refuse("must be an array");
  return value_->size();
}

JsonNode JsonNode::operator[](std::size_t index) const& {
  if (index >= size()) refuse(fmt::format("has {} entries; add entry {}", size(), index));
  return JsonNode((*value_)[index], *this, nullptr, index);
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() ||
                     value_->get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX));
  const std::int64_t number = fits ? value_->get<std::int64_t>() : 0;
  if (!fits || number < least || number > most)
    refuse(fmt::format("must be a whole number from {} to {}", least, most));
  return number;
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

/// A quantity as the command line would have it: strings as they are, numbers in decimal.
std::string quantity_text(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_number()) return value.dump();
  node.refuse("must be a number, or a string with a number and a unit");
}

/// What `parse` makes of the quantity; its complaint gets the place in the file.
template <class Parse>
std::int64_t parse_quantity(const JsonNode& node, Parse parse) {
  const std::string text = quantity_text(node);
  try {
    return parse(text);
  } catch (const Error& error) {
    node.refuse(error.what());
  }
}

}  // namespace

Nanos JsonNode::duration() const { return parse_quantity(*this, parse_duration); }

Bytes JsonNode::bytes() const { return parse_quantity(*this, parse_bytes); }

}  // namespace bubblescope
