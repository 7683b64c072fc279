// Reads JSON values strictly.
#include "traces/json/json_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/registry.h"
#include "traces/files/input_limit.h"
#include "traces/files/quote.h"

namespace bubblescope::traces {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNesting = 200;

/// The parser's position as "file:line:column".
std::string place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, line, before.size() - line_begin + 1);
}

/// The message of nlohmann's parser without its prefix, "[json.exception...] parse error at line 1,
/// column 2: ".
std::string parser_message(const std::exception& error) {
  std::string_view what = error.what();
  what.remove_prefix(std::min(what.size(), what.find("] ") + 2));
  if (what.starts_with("parse error at ")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what);
}

/// Builds the values while limiting nesting and memory, and notes the first repeated key. A
/// callback of Json::parse could do the same, but with a callback nlohmann searches the whole list
/// at the end of each of its entries.
class WatchedParser final : public nlohmann::json_sax<Json> {
 public:
  WatchedParser(std::string_view text, const std::string& file)
      : text_(text), file_(file), max_memory_(max_parsed(text.size())) {}

  bool null() override { return add(kValueMemory, nullptr); }
  bool boolean(bool value) override { return add(kValueMemory, value); }
  bool number_integer(Json::number_integer_t value) override { return add(kValueMemory, value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return add(kValueMemory, value); }
  bool number_float(Json::number_float_t value, const std::string&) override {
    return add(kValueMemory, value);
  }
  bool string(std::string& value) override {
    return add(kNodeMemory + value.size(), std::move(value));
  }
  bool binary(Json::binary_t&) override { return false; }  // text formats have no binary values
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return open(Json::value_t::object);
  }
  bool key(std::string& name) override {
    if (!keys_.back().insert(name).second && !repeated_) repeated_ = name;
    count(kNodeMemory + name.size());
    member_ = &open_.back()->get_ref<Json::object_t&>()[std::move(name)];
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return open(Json::value_t::array); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const Json::exception& refused) override {
    if (const auto* fault = dynamic_cast<const Json::parse_error*>(&refused))
      throw invalid_json(text_, fault->byte, refused, file_);
    // The only other error is a number that does not fit into a double.
    throw Error(fmt::format("{}: no valid json: {}", file_, parser_message(refused)));
  }

  /// Returns the parsed value; call it only after parsing has succeeded.
  Json take() && { return std::move(root_); }
  const std::optional<std::string>& repeated() const { return repeated_; }

 private:
  // The approximate memory of a value in a list, and of a string, a list, an object or a key.
  static constexpr std::size_t kValueMemory = 24;
  static constexpr std::size_t kNodeMemory = 96;

  /// Adds a value at the parser's position: at the end of a list, after a key, or as the root.
  template <class Value>
  Json& place(Value&& value) {
    if (open_.empty()) return root_ = Json(std::forward<Value>(value));
    if (open_.back()->is_object()) return *member_ = Json(std::forward<Value>(value));
    return open_.back()->get_ref<Json::array_t&>().emplace_back(std::forward<Value>(value));
  }
  template <class Value>
  bool add(std::size_t memory, Value&& value) {
    count(memory);
    place(std::forward<Value>(value));
    return true;
  }
  bool open(Json::value_t kind) {
    if (open_.size() >= kMaxNesting)
      throw Error(fmt::format("{}: nests more than {} arrays and objects", file_, kMaxNesting));
    count(kNodeMemory);
    open_.push_back(&place(kind));
    return true;
  }
  void count(std::size_t memory) {
    memory_ += memory;
    if (memory_ > max_memory_)
      throw Error(
          fmt::format("{}: its values take more than {} MiB; `max_input` SIZE lifts the "
                      "limit",
                      file_, max_memory_ >> 20));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t max_memory_;
  std::size_t memory_ = 0;
  Json root_;
  /// The lists and objects that are still open, from the root to the innermost. Only the innermost
  /// one grows, so none of them moves before it is closed.
  std::vector<Json*> open_;
  Json* member_ = nullptr;                   ///< the value behind the last key
  std::vector<std::set<std::string>> keys_;  ///< the keys of each open object
  std::optional<std::string> repeated_;
};

}  // namespace

Error invalid_json(std::string_view text, std::size_t byte, const std::exception& refused,
                   const std::string& file) {
  return Error(
      fmt::format("{}: no valid json: {}", place_of(text, byte, file), parser_message(refused)));
}

Json parse_json(std::string_view text, const std::string& file) {
  WatchedParser parser(text, file);
  Json::sax_parse(text.begin(), text.end(), &parser);
  if (parser.repeated())
    throw Error(fmt::format("{}: the key {} is duplicated in one object; remove one", file,
                            quote(*parser.repeated())));
  return std::move(parser).take();
}

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
    const std::string nearest = find_nearest_name(key, known);
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
  if (index >= size()) refuse(fmt::format("has {} entries; add entry {}", size(), index));
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

/// A quantity as the command line takes it: strings unchanged, numbers in decimal.
std::string format_quantity(const JsonNode& node) {
  const Json& value = node.value();
  if (value.is_string()) return value.get<std::string>();
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

}  // namespace

Nanos JsonNode::duration() const { return parse_quantity(*this, parse_duration); }

Bytes JsonNode::bytes() const { return parse_quantity(*this, parse_bytes); }

JsonFile::JsonFile(std::string_view text, const std::string& file)
    : json_(std::make_unique<const Json>(parse_json(text, file))), file_(file) {}

JsonFile::~JsonFile() = default;

}  // namespace bubblescope::traces
