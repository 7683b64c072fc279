// The quantiles of all reports: nearest ranks, so that each is a value that occurred.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bubblescope::inline sim {

/// The least of the values that `percent` % of them do not exceed; of an even number of values, the
/// median is the lower middle one. Takes at least one value.
template <class Value>
Value quantile(std::vector<Value> values, std::size_t percent) {
  const std::size_t rank = (values.size() * percent + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace bubblescope::inline sim
