// Quantiles by the nearest-rank method, so that each is a value that occurred. All reports use
// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bubblescope::inline sim {

/// The `percent` % quantile: the smallest value that at least `percent` % of the values do not
/// exceed. The median of an even number of values is the lower of the middle two. Requires at least
/// one value.
template <class Value>
Value quantile(std::vector<Value> values, std::size_t percent) {
  const std::size_t rank = (values.size() * percent + 99) / 100;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace bubblescope::inline sim
