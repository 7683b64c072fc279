// Writing json value by value, in the order in which a format lists its keys.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>

namespace bubblescope::traces {

struct JsonStyle {
  bool indented = false;  ///< every key and value on a line of its own, indented by its depth
  bool ascii = false;     ///< letters beyond ASCII are escaped
};

/// Appends json to a text: `JsonWriter(out).begin_object().member("pp", 4).end_object()` appends
/// `{"pp":4}`. The writer sets commas, colons and quotes; line breaks only where line() or the
/// style asks for them. The caller closes what it opened.
class JsonWriter {
 public:
  /// `out` must outlive the writer.
  explicit JsonWriter(std::string& out, JsonStyle style = {}) : out_(out), style_(style) {}

  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }

  /// The next key, value or bracket begins a new line with this many spaces.
  JsonWriter& line(int indent);
  /// Does the same as line(), but writes nothing before the first item of a list.
  JsonWriter& line_between(int indent) { return follows_ ? line(indent) : *this; }

  /// `name` is the program's own: nothing in it needs an escape.
  JsonWriter& key(std::string_view name);
  /// A name from elsewhere, with the escapes that it needs.
  JsonWriter& escaped_key(std::string_view name);

  JsonWriter& value(bool value) { return raw(value ? "true" : "false"); }
  JsonWriter& value(double value);  ///< as json_number() writes it
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  template <std::integral Integer>
  JsonWriter& value(Integer value) {
    if constexpr (std::is_signed_v<Integer>) return integer(value);
    return natural(value);
  }
  JsonWriter& null() { return raw("null"); }

  /// The shortest form that reads back as the same double: "4" where value() writes "4.0".
  JsonWriter& shortest(double value);

  /// Writes a number with this many digits after its point.
  JsonWriter& fixed(double value, int digits);

  /// Appends a text that is json already.
  JsonWriter& raw(std::string_view json);

  template <class Value>
  JsonWriter& member(std::string_view name, const Value& value) {
    return key(name).value(value);
  }

  /// A member for what may be absent; absent values are null.
  template <class Optional>
  JsonWriter& member_or_null(std::string_view name, const Optional& value) {
    return value ? member(name, *value) : key(name).null();
  }

  template <class Range>
  JsonWriter& array(std::string_view name, const Range& values) {
    key(name).begin_array();
    for (const auto& each : values) value(each);
    return end_array();
  }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(std::int64_t value);
  JsonWriter& natural(std::uint64_t value);
  JsonWriter& end_key();
  void separate();  ///< the comma and the line break before a key, a value or an opening bracket

  std::string& out_;
  JsonStyle style_;
  int depth_ = 0;         ///< the number of open brackets
  int indent_ = -1;       ///< of the line break that waits; negative: none
  bool follows_ = false;  ///< whether a value of the same list or object stands before
  bool has_key_ = false;  ///< whether a key waits for its value
};

/// Writes what a caller adds to an object that a function writes.
using WriteMembers = std::function<void(JsonWriter&)>;

}  // namespace bubblescope::traces
