// Formats words and numbers.
#include "traces/text/wording.h"

#include <fmt/format.h>

#include <algorithm>

namespace bubblescope::traces {

std::string list_words(const std::vector<std::string>& words) {
  std::string list;
  for (std::size_t at = 0; at < words.size(); ++at)
    list += (at == 0 ? "" : at + 1 == words.size() ? " and " : ", ") + words[at];
  return list;
}

std::string shape_text(const Shape& shape) {
  std::string text = counted(shape.ranks, "rank") + ", ";
  if (shape.chunks > 1) text += counted(shape.chunks, "chunk") + " each, ";
  text += counted(shape.microbatches, "micro-batch");
  if (shape.slices > 1) text += " in " + counted(shape.slices, "slice");
  return text;
}

std::string name_worker(const Worker& worker, bool has_replicas) {
  return has_replicas ? fmt::format("rank {} of replica {}", worker.rank, worker.replica)
                      : fmt::format("rank {}", worker.rank);
}

std::string trim_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

std::string format_percent(double fraction) {
  if (fraction > 0 && fraction < 0.0005) return "<0.1 %";
  return trim_zeros(fmt::format("{:.1f}", 100 * fraction)) + " %";
}

int measure_columns(std::string_view text) {
  int columns = 0;
  bool escape = false;
  for (const char byte : text) {
    escape = escape || byte == '\x1b';
    const bool continues = (byte & 0xc0) == 0x80;  // a later byte of a character
    if (!escape && !continues) ++columns;
    if (byte == 'm') escape = false;
  }
  return columns;
}

std::string wrap(const std::vector<std::string>& entries, std::string_view indent,
                 std::string_view separator, int width) {
  const std::size_t mark = std::min(separator.find_first_not_of(' '), separator.size());
  std::string text;
  std::string line(indent);
  for (std::size_t at = 0; at < entries.size(); ++at) {
    if (at > 0 &&
        measure_columns(line) + measure_columns(separator) + measure_columns(entries[at]) > width) {
      text += line + "\n";
      line = std::string(indent) + std::string(separator.substr(mark));
    } else if (at > 0) {
      line += separator;
    }
    line += entries[at];
  }
  return text + line + "\n";
}

}  // namespace bubblescope::traces
