// Joins numbers that follow each other.
#include "traces/measured/number_ranges.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>

namespace bubblescope::traces {

void NumberRanges::add(std::int64_t first, std::int64_t last) {
  if (first > last) return;
  if (!ranges_.empty() && ranges_.back().second == first - 1)
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
    words.push_back(fmt::format("{}", first));
    if (first == last) continue;
    words.back() += fmt::format("{}{}", first + 1 == last ? ", " : " to ", last);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string list_steps(const std::vector<std::int64_t>& numbers) {
  NumberRanges ranges;
  for (const std::int64_t number : numbers) ranges.add(number, number);
  return (ranges.are_several() ? "steps " : "step ") + ranges.text();
}

}  // namespace bubblescope::traces
