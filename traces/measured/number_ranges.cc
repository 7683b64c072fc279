// Joins numbers that follow each other.
#include "traces/measured/number_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace bubblescope::traces {

void NumberRanges::add(std::int64_t first, std::int64_t last) {
  if (first > last) return;
  if (!ranges_.empty() && ranges_.back().second + 1 == first)
    ranges_.back().second = last;
  else
    ranges_.emplace_back(first, last);
}

std::int64_t NumberRanges::count() const {
  std::int64_t count = 0;
  for (const auto& [first, last] : ranges_) count += last - first + 1;
  return count;
}

std::string NumberRanges::text() const {
  constexpr std::size_t kMaxRanges = 8;
  std::vector<std::string> words;
  for (const auto& [first, last] : ranges_) {
    if (words.size() == kMaxRanges) {
      words.emplace_back("...");
      break;
    }
    const char* const between = first + 1 == last ? ", " : " to ";
    words.push_back(fmt::format("{}", first));
    if (first < last) words.back() += fmt::format("{}{}", between, last);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace bubblescope::traces
