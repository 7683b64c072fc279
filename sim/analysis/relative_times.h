// Relative times: how long each worker takes in each step, divided by what is usual for it. What is
// usual is up to the caller.
#pragma once

#include <cstddef>
#include <vector>

namespace bubblescope::inline sim {

using RelativeTimes = std::vector<std::vector<double>>;  ///< [worker][step]

/// Shorter relative times count as this one, so that they have a logarithm and can divide.
inline constexpr double kMinRelativeTime = 1e-9;

/// Divides the times of every worker by the median of the other ranks of its replica: micro-batches
/// that are longer are longer on all of them. Workers are listed by replica and rank; there must be
/// at least two ranks.
RelativeTimes relate_to_ranks(const RelativeTimes& relative_times, std::size_t ranks);

/// The standard deviation of normally distributed values whose distances from their centre have the
/// median of these distances. A few outliers do not change it.
double robust_deviation(std::vector<double> distances);

}  // namespace bubblescope::inline sim
