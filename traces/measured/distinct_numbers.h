// Whether the numbers of processes or files tell them apart.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

namespace bubblescope::traces {

/// Whether all items have a number, and no two the same. `number_of` gives that of an item, or
/// none.
template <class Items, class NumberOf = std::identity>
bool are_distinct(const Items& items, NumberOf number_of = {}) {
  std::set<std::int32_t> numbers;
  return std::all_of(items.begin(), items.end(), [&](const auto& item) {
    const std::optional<std::int32_t> number = number_of(item);
    return number && numbers.insert(*number).second;
  });
}

}  // namespace bubblescope::traces
