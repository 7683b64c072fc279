// Strict reading of JSON files: every fault is reported with its JSON pointer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>  // the whole library takes seconds to compile
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ir/error.h"
#include "sim/ir/units.h"

namespace bubblescope::traces {

/// Parses a whole file. Throws Error, such as "costs.json:3:7: ...", for a syntax error and for a
/// repeated key.
nlohmann::json parse_json(std::string_view text, const std::string& file);

/// Returns the Error for a byte that a JSON parser refused: "costs.json:3:7: no valid json: ...".
Error invalid_json(std::string_view text, std::size_t byte, const std::exception& refused,
                   const std::string& file);

/// A key of an object, and the spelling that it had before it was renamed: files may have either,
/// but not both. We write the name alone.
struct JsonKey {
  constexpr JsonKey(const char* its_name, const char* its_old_name = nullptr)
      : name(its_name), old_name(its_old_name) {}
  const char* name;
  const char* old_name;  ///< null: it was never renamed
};

/// A value in a parsed file that knows its JSON pointer. It refers to the file's json and to its
/// parent node; both must outlive it, so members of a temporary node cannot be taken.
class JsonNode {
 public:
  using Json = nlohmann::json;

  JsonNode(const Json& value, const std::string& file) : value_(&value), file_(&file) {}

  const Json& value() const { return *value_; }
  bool is_null() const;
  bool is_array() const;
  bool is_object() const;
  bool is_text() const;
  bool is_integer() const;
  std::optional<double> number() const;                   ///< empty for anything else
  std::optional<std::uint64_t> unsigned_integer() const;  ///< likewise

  std::string pointer() const;  ///< "/stages/2/forward"; of the root ""
  /// Throws Error: "costs.json: /stages/2/forward: must be ...".
  [[noreturn]] void refuse(const std::string& what) const;

  /// Expects an object without other keys; a mistyped key is answered with the nearest known one.
  void expect_keys(std::initializer_list<JsonKey> keys) const;
  /// Expects the format key of a file: its name and version, "bubblescope-costs/1".
  void expect_format(const std::string& format) const;
  JsonNode at(JsonKey key) const&;  ///< a required member
  JsonNode at(JsonKey key) const&& = delete;
  std::optional<JsonNode> find(JsonKey key) const&;
  std::optional<JsonNode> find(JsonKey key) const&& = delete;

  std::vector<JsonNode> members() const&;  ///< of an object; empty for anything else
  std::vector<JsonNode> members() const&& = delete;
  const char* key() const { return key_; }  ///< null unless it is a member

  std::size_t size() const;  ///< length of an array; throws Error for anything else
  JsonNode operator[](std::size_t index) const&;
  JsonNode operator[](std::size_t index) const&& = delete;

  std::int64_t integer(std::int64_t min_value, std::int64_t max_value) const;
  std::int32_t integer32(std::int32_t min_value, std::int32_t max_value) const {
    return static_cast<std::int32_t>(integer(min_value, max_value));
  }
  double positive_number() const;
  bool boolean() const;
  const std::string& text() const;
  Nanos duration() const;  ///< "18.5us", or a number of milliseconds
  Bytes bytes() const;     ///< "64MiB", or a number of bytes

 private:
  JsonNode(const Json& value, const JsonNode& parent, const char* key, std::size_t index)
      : value_(&value), file_(parent.file_), parent_(&parent), key_(key), index_(index) {}

  const Json* value_;
  const std::string* file_;
  const JsonNode* parent_ = nullptr;
  const char* key_ = nullptr;  ///< name of a member; null for entry index_ of an array
  std::size_t index_ = 0;
};

/// A parsed file, for readers that do not use the JSON library themselves.
class JsonFile {
 public:
  /// Throws Error as parse_json() does.
  JsonFile(std::string_view text, const std::string& file);
  ~JsonFile();
  JsonFile(const JsonFile&) = delete;
  JsonFile& operator=(const JsonFile&) = delete;

  JsonNode root() const& { return JsonNode(*json_, file_); }  ///< refers to this file
  JsonNode root() const&& = delete;

 private:
  std::unique_ptr<const nlohmann::json> json_;
  std::string file_;
};

}  // namespace bubblescope::traces
