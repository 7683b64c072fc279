// Writes commas, quotes and numbers.
#include "traces/json/json_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "traces/json/json_string.h"

namespace bubblescope::traces {

void JsonWriter::separate() {
  if (follows_) out_ += ',';
  if (style_.indented && depth_ > 0 && !has_key_) indent_ = depth_;
  has_key_ = false;
  if (indent_ >= 0) out_.append(1, '\n').append(static_cast<std::size_t>(indent_), ' ');
  indent_ = -1;
  follows_ = true;
}

JsonWriter& JsonWriter::line(int indent) {
  indent_ = indent;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  out_ += bracket;
  ++depth_;
  follows_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  --depth_;
  has_key_ = !follows_;  // brackets with nothing between them share a line
  if (style_.indented && follows_) line(depth_);
  follows_ = false;  // no comma before a bracket that closes
  separate();
  out_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  (out_ += '"').append(name) += '"';
  return end_key();
}

JsonWriter& JsonWriter::escaped_key(std::string_view name) {
  value(name);
  return end_key();
}

JsonWriter& JsonWriter::end_key() {
  out_ += style_.indented ? ": " : ":";
  follows_ = false;
  has_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  out_ += json;
  return *this;
}

JsonWriter& JsonWriter::value(double value) { return raw(json_number(value)); }

JsonWriter& JsonWriter::value(std::string_view text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char letter) {
    return letter >= ' ' && letter <= '~' && letter != '"' && letter != '\\';
  });
  if (!is_plain) return raw(json_string(text, style_.ascii));
  separate();
  (out_ += '"').append(text) += '"';
  return *this;
}

JsonWriter& JsonWriter::shortest(double value) {
  if (!std::isfinite(value)) return null();
  return raw(fmt::format("{}", value));
}

JsonWriter& JsonWriter::fixed(double value, int digits) {
  separate();
  fmt::format_to(std::back_inserter(out_), "{:.{}f}", value, digits);
  return *this;
}

JsonWriter& JsonWriter::integer(std::int64_t value) {
  const fmt::format_int digits(value);
  return raw({digits.data(), digits.size()});
}

JsonWriter& JsonWriter::natural(std::uint64_t value) {
  const fmt::format_int digits(value);
  return raw({digits.data(), digits.size()});
}

}  // namespace bubblescope::traces
