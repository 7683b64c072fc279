// Parses whole files into values: with the scanner, or where that finds a fault, with the parser
// that can word it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/ir/error.h"
#include "traces/files/input_limit.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"
#include "traces/json/scan_json.h"

namespace bubblescope::traces {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNesting = 200;

/// Returns the parser's position as "file:line:column".
std::string place_of(std::string_view text, std::size_t byte, const std::string& file) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}:{}", file, line, before.size() - line_begin + 1);
}

/// Returns the message of nlohmann's parser without its prefix, "[json.exception...] parse error at
/// line 1, column 2: ".
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
  bool start_object(std::size_t) override { return open(Json::value_t::object); }
  bool key(std::string& name) override {
    count(kNodeMemory + name.size());
    auto& object = open_.back()->get_ref<Json::object_t&>();
    const auto [member, is_new] = object.try_emplace(std::move(name));
    if (!is_new && !repeated_) repeated_ = member->first;
    member_ = &member->second;
    return true;
  }
  bool end_object() override {
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
    throw Error(fmt::format("{}: not valid JSON: {}", file_, parser_message(refused)));
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
  Json* member_ = nullptr;  ///< the value after the last key
  std::optional<std::string> repeated_;
};

/// Passes on what the scanner finds, which is several times faster than nlohmann's lexer.
class ScannedValues final : public JsonVisitor {
 public:
  ScannedValues(std::string_view text, const std::string& file) : parser_(text, file) {}

  bool visit_key(std::string_view key) override {
    std::string name(key);
    return parser_.key(name);
  }
  void visit_string(std::string_view value) override {
    std::string text(value);
    parser_.string(text);
  }
  void visit_number(std::string_view text) override {
    if (text.find_first_of(".eE") != text.npos)
      add<double>(text, [this](double value) { parser_.number_float(value, {}); });
    else if (text.front() == '-')
      add<std::int64_t>(text, [this](std::int64_t value) { parser_.number_integer(value); });
    else
      add<std::uint64_t>(text, [this](std::uint64_t value) { parser_.number_unsigned(value); });
  }
  void visit_word(std::string_view word) override {
    word == "null" ? parser_.null() : parser_.boolean(word == "true");
  }
  void begin_object() override { parser_.start_object(0); }
  void end_object() override { parser_.end_object(); }
  void begin_array() override { parser_.start_array(0); }
  void end_array() override { parser_.end_array(); }

  /// The values; empty where the full parser must look at a number or a repeated key.
  std::optional<Json> take() && {
    if (!all_in_range_ || parser_.repeated()) return {};
    return std::move(parser_).take();
  }

 private:
  template <class Number, class Add>
  void add(std::string_view text, Add add_number) {
    Number number{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc()) all_in_range_ = false;
    add_number(number);
  }

  WatchedParser parser_;
  bool all_in_range_ = true;
};

/// Returns the values of a text that is certainly valid json; empty otherwise.
std::optional<Json> scan_values(std::string_view text, const std::string& file) {
  ScannedValues values(text, file);
  if (!scan_json(text, values)) return {};
  return std::move(values).take();
}

}  // namespace

Error invalid_json(std::string_view text, std::size_t byte, const std::exception& refused,
                   const std::string& file) {
  return Error(
      fmt::format("{}: not valid JSON: {}", place_of(text, byte, file), parser_message(refused)));
}

Json parse_json(std::string_view text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) throw Error(file + " is empty");
  if (std::optional<Json> scanned = scan_values(text, file)) return *std::move(scanned);
  WatchedParser parser(text, file);
  Json::sax_parse(text.begin(), text.end(), &parser);
  if (parser.repeated())
    throw Error(fmt::format("{}: the key {} is duplicated in one object; remove one", file,
                            quote(*parser.repeated())));
  return std::move(parser).take();
}

}  // namespace bubblescope::traces
