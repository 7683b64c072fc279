// Compares workers with the other ranks of their replica.
#include "sim/analysis/relative_times.h"

#include <algorithm>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

RelativeTimes relate_to_ranks(const RelativeTimes& relative_times, std::size_t ranks) {
  RelativeTimes related = relative_times;
  for (std::size_t worker = 0; worker < relative_times.size(); ++worker)
    for (std::size_t step = 0; step < relative_times[worker].size(); ++step) {
      std::vector<double> others;
      const std::size_t first = worker / ranks * ranks;
      for (std::size_t other = first; other < first + ranks; ++other)
        if (other != worker) others.push_back(relative_times[other][step]);
      related[worker][step] /= std::max(quantile(std::move(others), 50), kMinRelativeTime);
    }
  return related;
}

double robust_deviation(std::vector<double> distances) {
  constexpr double kMadOfNormal = 1.4826;  // the deviation of normal values over their median one
  return kMadOfNormal * quantile(std::move(distances), 50);
}

}  // namespace bubblescope::inline sim
