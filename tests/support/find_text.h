// Searches in what is written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace bubblescope::tests {

/// Whether any of the sentences contains `part`.
inline bool mentions(const std::vector<std::string>& sentences, const std::string& part) {
  return std::any_of(sentences.begin(), sentences.end(), [&](const std::string& sentence) {
    return sentence.find(part) != sentence.npos;
  });
}

/// The number of times that a text contains `wanted`.
inline std::size_t count(const std::string& text, const std::string& wanted) {
  std::size_t found = 0;
  for (std::size_t at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1))
    ++found;
  return found;
}

}  // namespace bubblescope::tests
