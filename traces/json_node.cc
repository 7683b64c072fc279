// Reads json values strictly.
#include "traces/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "traces/cell.h"
#include "traces/input_limit.h"

namespace bubblescope {

namespace {

using Json = nlohmann::json;

constexpr int kMostNested = 200;

/// The parser's position as "file:line:column".
std::string place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, line, before.size() - line_begin + 1);
}

/// Builds values like nlohmann's parser, but stops at input that nests or grows beyond any file of
/// ours, and records duplicate keys. (A callback of Json::parse could do this too, but then the
/// parser scans the whole list at the end of each of its entries.)
class WatchedParser : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;

  WatchedParser(Json& json, std::string_view text, const std::string& file)
      : Base(json), file_(file), most_memory_(most_parsed(text.size())) {}

  bool null() { return count(kValueMemory) && Base::null(); }
  bool boolean(bool value) { return count(kValueMemory) && Base::boolean(value); }
  bool number_integer(Json::number_integer_t value) {
    return count(kValueMemory) && Base::number_integer(value);
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    return count(kValueMemory) && Base::number_unsigned(value);
  }
  bool number_float(Json::number_float_t value, const std::string& text) {
    return count(kValueMemory) && Base::number_float(value, text);
  }
  bool string(std::string& value) {
    return count(kNodeMemory + value.size()) && Base::string(value);
  }
  bool start_object(std::size_t size) {
    keys_.emplace_back();
    return nest() && Base::start_object(size);
  }
  bool key(std::string& name) {
    if (!keys_.back().insert(name).second && !repeated_) repeated_ = name;
    return count(kNodeMemory + name.size()) && Base::key(name);
  }
  bool end_object() {
    keys_.pop_back();
    --depth_;
    return Base::end_object();
  }
  bool start_array(std::size_t size) { return nest() && Base::start_array(size); }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }

  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  // Approximate memory of a value in a list, and of a text, a list, an object or a key.
  static constexpr std::size_t kValueMemory = 24;
  static constexpr std::size_t kNodeMemory = 96;

  bool nest() {
    if (++depth_ > kMostNested)
      throw Error(fmt::format("{}: nests more than {} arrays and objects", file_, kMostNested));
    return count(kNodeMemory);
  }
  bool count(std::size_t memory) {
    memory_ += memory;
    if (memory_ > most_memory_)
      throw Error(
          fmt::format("{}: its values take more than {} MiB; --max-input SIZE lifts the "
                      "limit",
                      file_, most_memory_ >> 20));
    return true;
  }

  const std::string& file_;
  std::size_t most_memory_;
  std::size_t memory_ = 0;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;  ///< of the open objects
  std::optional<std::string> repeated_;
};

/// The part of nlohmann's message after "[json.exception...] parse error at line 1, column 2: ".
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
  Json json;
  WatchedParser parser(json, text, file);
  try {
    Json::sax_parse(text.begin(), text.end(), &parser);
    if (parser.repeated())
      throw Error(fmt::format("{}: the key {} stands twice in one object; remove one", file,
                              quote(*parser.repeated())));
    return json;
  } catch (const Json::parse_error& error) {
    throw invalid_json(text, error.byte, error, file);
  } catch (const Json::exception& error) {  // a number that exceeds a double
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

bool JsonNode::is_null() const { return value_->is_null(); }

bool JsonNode::is_array() const { return value_->is_array(); }

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

/// A quantity as the command line takes it: strings unchanged, numbers in decimal.
std::string quantity_text(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  if (value.is_number()) return value.dump();
  node.refuse("must be a number, or a string with a number and a unit");
}

/// Parses the quantity with `parse`, and adds the place in the file to its error.
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

JsonFile::JsonFile(std::string_view text, const std::string& file)
    : json_(std::make_unique<const Json>(parse_json(text, file))), file_(file) {}

JsonFile::~JsonFile() = default;

}  // namespace bubblescope
