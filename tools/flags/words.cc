// Splits and joins text.
#include "tools/flags/words.h"

#include <cctype>
#include <cstddef>

namespace bubblescope::tools {

std::vector<std::string> split(const std::string& text, char sign) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size() || parts.empty()) {
    const std::size_t end = text.find(sign, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) break;
    begin = end + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string>& words, const std::string& between) {
  std::string text;
  for (const std::string& word : words) text += (&word == words.data() ? "" : between) + word;
  return text;
}

std::string trim(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string to_lower(std::string text) {
  for (char& letter : text)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return text;
}

}  // namespace bubblescope::tools
