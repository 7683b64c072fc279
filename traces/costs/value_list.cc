// Splits lists into values.
#include "traces/costs/value_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "sim/ir/error.h"
#include "sim/ir/number.h"
#include "traces/files/file.h"
#include "traces/files/quote.h"
#include "traces/json/json_node.h"

namespace bubblescope::traces {

namespace {

constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;

bool is_separator(char letter) {
  return letter == ',' || std::isspace(static_cast<unsigned char>(letter)) != 0;
}

/// Calls visit(word, where) for every word outside comments.
template <class Visit>
void visit_words(std::string_view text, const std::string& file, const Visit& visit) {
  std::size_t line = 1;
  std::size_t line_start = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') {
      ++line;
      line_start = ++at;
    } else if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (is_separator(text[at])) {
      ++at;
    } else {
      std::size_t end = at;
      while (end < text.size() && !is_separator(text[end]) && text[end] != '#') ++end;
      visit(text.substr(at, end - at), fmt::format("{}:{}:{}", file, line, at - line_start + 1));
      at = end;
    }
  }
}

bool is_json(std::string_view text) {
  const auto first = std::find_if_not(text.begin(), text.end(), is_separator);
  return first != text.end() && *first == '[';
}

std::int64_t length_of(std::string_view word, const std::string& where) {
  const std::int64_t length = parse_number<std::int64_t>(std::string(word)).value_or(0);
  if (length < 1 || length > kMaxLength)
    throw Error(fmt::format("{}: {} is not a number of tokens; write a whole number from 1 to {}",
                            where, quote(std::string(word)), kMaxLength));
  return length;
}

Nanos time_of(std::string_view word, const std::string& where) {
  try {
    return parse_duration(word);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()));
  }
}

template <class OfWord, class OfNode>
std::vector<std::int64_t> parse_list(std::string_view text, const std::string& file,
                                     const OfWord& of_word, const OfNode& of_node) {
  std::vector<std::int64_t> values;
  if (is_json(text)) {
    const JsonFile json(text, file);
    const JsonNode root = json.root();
    for (std::size_t at = 0; at < root.size(); ++at) values.push_back(of_node(root[at]));
  } else {
    visit_words(text, file, [&](std::string_view word, const std::string& where) {
      values.push_back(of_word(word, where));
    });
  }
  if (values.empty()) throw Error(file + " has no values; write one per micro-batch");
  return values;
}

}  // namespace

std::vector<std::int64_t> parse_lengths(std::string_view text, const std::string& file) {
  return parse_list(text, file, length_of,
                    [](const JsonNode& node) { return node.integer(1, kMaxLength); });
}

std::vector<Nanos> parse_release_times(std::string_view text, const std::string& file) {
  return parse_list(text, file, time_of, [](const JsonNode& node) { return node.duration(); });
}

std::vector<std::int64_t> read_lengths(const std::string& path) {
  return parse_lengths(read_file(path), name_input(path));
}

std::vector<Nanos> read_release_times(const std::string& path) {
  return parse_release_times(read_file(path), name_input(path));
}

}  // namespace bubblescope::traces
