// The median of values of which none need have occurred; quantile() gives one that did.
#pragma once

#include <algorithm>
#include <vector>

namespace bubblescope::inline sim {

/// Returns the median: of an even number of values the mean of the middle two, so that the medians
/// of values and of what they leave of a whole add up, and costs fitted to two iterations are not
/// the shorter of both. Requires at least one value.
inline double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace bubblescope::inline sim
