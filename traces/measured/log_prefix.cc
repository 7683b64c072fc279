// Reads the beginnings of lines, mark by mark.
#include "traces/measured/log_prefix.h"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "sim/ir/number.h"
#include "traces/schedules/cell.h"

namespace bubblescope::traces {

namespace {

bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }
bool is_word(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '.' || letter == '_' ||
         letter == '-';
}

template <class Is>
std::size_t count_front(std::string_view text, Is is) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}

/// The text that a bracket at the beginning encloses; empty if it is not closed.
std::string_view find_enclosed(std::string_view head, char close) {
  const std::size_t end = head.find(close);
  return end == head.npos ? std::string_view() : head.substr(1, end - 1);
}

/// Accepts times such as "2025-03-02T10:11:12.123Z", "2025-03-02 10:11:12,123" and "10:11:12".
bool is_time(std::string_view text) {
  const auto is_part = [](char letter) {
    return is_digit(letter) || std::string_view("-/:.,+TZ ").find(letter) != std::string_view::npos;
  };
  if (text.empty() || !is_digit(text.front()) || (!is_digit(text.back()) && text.back() != 'Z'))
    return false;
  const auto separators = std::count_if(text.begin(), text.end(), [](char letter) {
    return letter == '-' || letter == '/' || letter == ':';
  });
  constexpr int kMinDigits = 6;
  return std::all_of(text.begin(), text.end(), is_part) && separators >= 2 &&
         std::count_if(text.begin(), text.end(), is_digit) >= kMinDigits;
}

bool is_level(std::string_view text) {
  return text == "INFO" || text == "WARNING" || text == "WARN" || text == "ERROR" ||
         text == "DEBUG";
}

/// Accepts texts such as "logging.py:96:log_dist" and "training:1609".
bool is_source_line(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != text.npos && colon > 0 && colon + 1 < text.size() && is_digit(text[colon + 1]) &&
         std::none_of(text.begin(), text.end(), is_blank);
}

/// Measures a level such as "INFO", "INFO:" or "INFO:megatron.core.timers:".
std::size_t measure_level(std::string_view head) {
  const std::size_t level = count_front(head, is_word);
  if (!is_level(head.substr(0, level))) return 0;
  if (level == head.size() || head[level] != ':') return level;
  const std::size_t logger = count_front(head.substr(level + 1), is_word);
  const std::size_t end = level + 1 + logger;
  return logger > 0 && end < head.size() && head[end] == ':' ? end + 1 : level + 1;
}

/// The length of a time, a level or a place in the source; 0 if the text begins with none.
std::size_t measure_note(std::string_view head) {
  if (head.front() == '[') {
    const std::string_view enclosed = find_enclosed(head, ']');
    const bool is_note = is_time(enclosed) || is_level(enclosed) || is_source_line(enclosed);
    return is_note ? enclosed.size() + 2 : 0;
  }
  if (head.front() == '-' && (head.size() == 1 || is_blank(head[1]))) return 1;
  for (const std::string_view stream : {"stdout F", "stderr F", "stdout P", "stderr P"})
    if (head.starts_with(stream)) return stream.size();
  if (const std::size_t level = measure_level(head)) return level;
  const std::size_t time = count_front(head, [](char letter) { return !is_blank(letter); });
  return is_time(head.substr(0, time)) ? time : 0;
}

std::size_t measure_bracket(std::string_view head) {
  const std::string_view enclosed = find_enclosed(head, ']');
  if (enclosed.empty()) return 0;
  const std::string_view rest = head.substr(enclosed.size() + 2);
  if (enclosed.starts_with("pod/")) return enclosed.size() + 2;  // kubectl logs
  const bool is_name = std::all_of(enclosed.begin(), enclosed.end(), [](char letter) {
    return is_word(letter) || letter == ',' || letter == '/';
  });
  if (!is_name) return 0;
  for (const std::string_view end : {":", "<stdout>:", "<stderr>:"})  // the latter are mpirun's
    if (rest.starts_with(end)) return enclosed.size() + 2 + end.size();
  return 0;
}

/// The length of a name that a launcher gives; 0 if the text begins with none.
std::size_t measure_writer(std::string_view head) {
  if (head.front() == '[') return measure_bracket(head);
  if (head.front() == '(') {
    const std::string_view enclosed = find_enclosed(head, ')');
    return enclosed.find("pid=") == enclosed.npos ? 0 : enclosed.size() + 2;
  }
  const std::size_t name = count_front(head, is_word);
  if (name == 0 || name == head.size()) return 0;
  const std::size_t blanks = count_front(head.substr(name), is_blank);
  if (name + blanks < head.size() && head[name + blanks] == '|') return name + blanks + 1;
  if (head[name] != ':') return 0;
  const std::string_view rest = head.substr(name + 1);
  if (!rest.empty() && !is_blank(rest.front()) && rest.front() != '[' && rest.front() != '(')
    return 0;
  const std::string_view next = strip(rest);
  const std::size_t digits = count_front(next, is_digit);
  const bool is_progress_bar = digits > 0 && digits < next.size() && next[digits] == '%';
  return is_progress_bar ? 0 : name + 1;
}

}  // namespace

LogPrefix read_prefix(std::string_view head) {
  LogPrefix prefix;
  for (;;) {
    head = strip(head);
    prefix.is_known = head.empty();
    if (head.empty()) return prefix;
    if (const std::size_t note = measure_note(head)) {
      head.remove_prefix(note);
      continue;
    }
    const std::size_t name = measure_writer(head);
    if (name == 0) return prefix;
    prefix.writer += prefix.writer.empty() ? "" : " ";
    prefix.writer += head.substr(0, name);
    head.remove_prefix(name);
  }
}

std::string remove_colours(std::string_view text) {
  constexpr char kEscape = '\x1b';
  std::string plain;
  plain.reserve(text.size());
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(kEscape), text.size());
    plain += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) break;
    std::size_t length = 1;
    if (text.size() > 1 && text[1] == '[') {
      const auto is_parameter = [](char letter) { return is_digit(letter) || letter == ';'; };
      length = 2 + count_front(text.substr(2), is_parameter);
      length = std::min(length + 1, text.size());  // the letter of the sequence
    }
    text.remove_prefix(length);
  }
  return plain;
}

}  // namespace bubblescope::traces
