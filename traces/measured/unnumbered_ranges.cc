// Compares ranges with and without numbers by their times.
#include "traces/measured/unnumbered_ranges.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/ir/counted.h"

namespace bubblescope::traces {

void UnnumberedRanges::add(const TimeSpan& span, bool is_numbered, const std::string& name) {
  if (is_numbered)
    numbered_.push_back(span);
  else
    unnumbered_.push_back({span, name});
}

std::optional<std::string> UnnumberedRanges::describe() {
  sort_by_start(numbered_);
  // The latest end of a range and those before it, so that a search by start finds overlaps.
  for (std::size_t at = 1; at < numbered_.size(); ++at)
    numbered_[at].end = std::max(numbered_[at].end, numbered_[at - 1].end);
  std::size_t count = 0;
  std::string example;
  for (const Named& one : unnumbered_) {
    const auto after =
        std::upper_bound(numbered_.begin(), numbered_.end(), one.span.end,
                         [](Nanos end, const TimeSpan& numbered) { return end <= numbered.start; });
    if (after != numbered_.begin() && std::prev(after)->end > one.span.start) continue;
    if (count++ == 0) example = one.name;
  }
  if (count == 0) return {};
  return fmt::format(
      "{} left out, which name an op without its number outside of all numbered ops, such as '{}'; "
      "if they belong to the steps, give them numbers, or rules for their names",
      counted(count, "range"), example);
}

}  // namespace bubblescope::traces
