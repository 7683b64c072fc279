// Means: of values that are added one by one, and of a list.
#pragma once

#include <numeric>
#include <vector>

namespace bubblescope::inline sim {

struct Mean {
  double sum = 0;
  double count = 0;

  void add(double value) {
    sum += value;
    ++count;
  }
  double value() const { return count == 0 ? 0 : sum / count; }  ///< 0 of nothing
};

/// Requires at least one value.
inline double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace bubblescope::inline sim
