// Compares the paces of all workers in all steps.
#include "sim/analysis/slow_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kSlowPace = 1.1;
constexpr double kOutside = 4;  ///< in robust standard deviations
constexpr double kMadOfNormal = 1.4826;
constexpr std::size_t kFewestSteps = 4;
constexpr std::size_t kFewestOfTrend = 6;
constexpr double kGrown = 1.05;       ///< from the first to the last step
constexpr double kRankOrder = 0.9;    ///< Spearman's correlation of paces with steps
constexpr std::size_t kQuarter = 25;  ///< of the workers: fewer may be fast in a slow step

using Table = std::vector<std::vector<double>>;  ///< [worker][step]; workers by replica and rank

/// The computing time of every worker in every step.
Table sum_times(std::span<const ReplicatedStep> steps, std::span<const Mend> mends) {
  const auto ranks = static_cast<std::size_t>(steps.front().front().program.ranks);
  Table times(steps.front().size() * ranks, std::vector<double>(steps.size(), 0));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::vector<Durations> durations = mend_durations(steps[step], mends);
    for (std::size_t replica = 0; replica < steps[step].size(); ++replica)
      steps[step][replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        times[replica * ranks + static_cast<std::size_t>(one.rank)][step] +=
            static_cast<double>(durations[replica][id]);
      });
  }
  return times;
}

/// Divides every worker's times by its usual one, the median: of an even number it is the lower
/// of the middle two, so that a worker that is slow in half of the steps is usual in the others.
Table relative_to_usual(Table times) {
  for (std::vector<double>& of_worker : times) {
    const double usual = quantile(of_worker, 50);
    for (double& time : of_worker) time = usual > 0 ? time / usual : 1;
  }
  return times;
}

/// Divides the times of every worker by the median of the other ranks of its replica.
Table find_paces(const Table& relative, std::size_t ranks) {
  Table paces = relative;
  for (std::size_t worker = 0; worker < relative.size(); ++worker)
    for (std::size_t step = 0; step < relative[worker].size(); ++step) {
      std::vector<double> others;
      const std::size_t first = worker / ranks * ranks;
      for (std::size_t other = first; other < first + ranks; ++other)
        if (other != worker) others.push_back(relative[other][step]);
      paces[worker][step] /= std::max(quantile(std::move(others), 50), 1e-9);
    }
  return paces;
}

/// The pace beyond the usual spread.
double find_least_unusual(const Table& paces) {
  std::vector<double> sizes;
  for (const std::vector<double>& of_worker : paces)
    for (const double pace : of_worker) sizes.push_back(std::abs(std::log(std::max(pace, 1e-9))));
  return std::exp(kOutside * kMadOfNormal * quantile(std::move(sizes), 50));
}

/// Spearman's correlation of some values with their order.
double correlate_with_order(const std::vector<double>& values) {
  std::vector<std::size_t> sorted(values.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::stable_sort(sorted.begin(), sorted.end(), [&](std::size_t left, std::size_t right) {
    return values[left] < values[right];
  });
  double squares = 0;
  for (std::size_t rank = 0; rank < sorted.size(); ++rank) {
    const double apart = static_cast<double>(rank) - static_cast<double>(sorted[rank]);
    squares += apart * apart;
  }
  const auto count = static_cast<double>(values.size());
  return 1 - 6 * squares / (count * (count * count - 1));
}

/// A straight line through the logarithms of paces.
struct Growth {
  double first = 1;
  double last = 1;
};

Growth fit_growth(const std::vector<double>& paces) {
  const double middle = (static_cast<double>(paces.size()) - 1) / 2;
  double mean = 0;
  double product = 0;
  double square = 0;
  for (std::size_t step = 0; step < paces.size(); ++step) {
    const double apart = static_cast<double>(step) - middle;
    const double log = std::log(std::max(paces[step], 1e-9));
    mean += log / static_cast<double>(paces.size());
    product += apart * log;
    square += apart * apart;
  }
  const double rise = product / square * middle;
  return {std::exp(mean - rise), std::exp(mean + rise)};
}

double lost(const SlowSteps& one) {
  return std::accumulate(one.paces.begin(), one.paces.end(), 0.0) -
         static_cast<double>(one.paces.size());
}

std::int64_t count_above(const std::vector<double>& paces, double least) {
  return std::count_if(paces.begin(), paces.end(), [=](double pace) { return pace > least; });
}

/// Sets the paces relative to the first step's, if they grow from step to step.
void follow_growth(SlowSteps& slow) {
  if (slow.paces.size() < kFewestOfTrend || correlate_with_order(slow.paces) < kRankOrder) return;
  const Growth growth = fit_growth(slow.paces);
  if (growth.last < kGrown * growth.first) return;
  slow.grows = true;
  slow.factor = growth.last / growth.first;
  for (double& pace : slow.paces) pace = std::max(1.0, pace / growth.first);
  slow.steps = count_above(slow.paces, 1 + (kGrown - 1) / 2);
}

/// Where a worker is slow in most steps, its usual pace is the slow one: divides by the pace of the
/// few fast steps, if there are two or more.
std::vector<double> relative_to_fast(std::vector<double> paces, double least) {
  std::vector<double> fast;
  for (const double pace : paces)
    if (pace < 1 / least) fast.push_back(pace);
  if (fast.size() < 2) return paces;
  const double usual = quantile(std::move(fast), 50);
  for (double& pace : paces) pace /= usual;
  return paces;
}

}  // namespace

std::vector<SlowSteps> find_slow_steps(std::span<const ReplicatedStep> steps,
                                       std::span<const Mend> mends) {
  const auto ranks = static_cast<std::size_t>(steps.front().front().program.ranks);
  if (steps.size() < kFewestSteps || ranks < 2) return {};
  const Table paces = find_paces(relative_to_usual(sum_times(steps, mends)), ranks);
  const double least = std::max(kSlowPace, find_least_unusual(paces));
  std::vector<SlowSteps> found;
  for (std::size_t worker = 0; worker < paces.size(); ++worker) {
    SlowSteps slow{
        {static_cast<std::int32_t>(worker / ranks), static_cast<std::int32_t>(worker % ranks)}};
    slow.paces = paces[worker];
    follow_growth(slow);
    if (slow.grows) {
      found.push_back(std::move(slow));
      continue;
    }
    slow.paces = relative_to_fast(paces[worker], least);
    slow.steps = count_above(slow.paces, least);
    if (slow.steps == 0 || slow.steps == std::ssize(steps)) continue;
    double sum = 0;
    for (double& pace : slow.paces) {
      if (pace <= least) pace = 1;
      sum += pace;
    }
    slow.factor = 1 + (sum - static_cast<double>(steps.size())) / static_cast<double>(slow.steps);
    found.push_back(std::move(slow));
  }
  std::stable_sort(found.begin(), found.end(), [](const SlowSteps& left, const SlowSteps& right) {
    return lost(left) > lost(right);
  });
  return found;
}

CommonSlowSteps find_common_slow_steps(std::span<const ReplicatedStep> steps,
                                       std::span<const Mend> mends) {
  CommonSlowSteps slow;
  if (steps.size() < 2) return slow;
  const Table relative = relative_to_usual(sum_times(steps, mends));
  Table of_steps(steps.size());  // [step][worker]
  std::vector<double> medians;   // [step]
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const std::vector<double>& of_worker : relative) of_steps[step].push_back(of_worker[step]);
    medians.push_back(quantile(of_steps[step], 50));
  }
  const double least = std::max(kSlowPace, find_least_unusual({medians}));
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (quantile(of_steps[step], kQuarter) <= least) {
      of_steps[step].clear();
      continue;
    }
    ++slow.steps;
    sum += medians[step];
    last = step;
  }
  if (slow.steps == 0) return slow;
  slow.paces = std::move(of_steps);
  slow.factor = sum / static_cast<double>(slow.steps);
  slow.are_first = static_cast<std::int64_t>(last) + 1 == slow.steps;
  return slow;
}

Mend with_usual_pace(std::span<const ReplicatedStep> steps, const CommonSlowSteps& slow) {
  return [steps, slow](const ReplicatedStep& step, std::vector<Durations>& durations) {
    const std::vector<double>& paces = slow.paces[static_cast<std::size_t>(&step - steps.data())];
    if (paces.empty()) return;
    const std::size_t ranks = paces.size() / step.size();
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        const double pace = paces[replica * ranks + static_cast<std::size_t>(one.rank)];
        if (pace > 0)
          durations[replica][id] = std::llround(static_cast<double>(durations[replica][id]) / pace);
      });
  };
}

Mend with_usual_pace(std::span<const ReplicatedStep> steps, const SlowSteps& slow) {
  return [steps, slow](const ReplicatedStep& step, std::vector<Durations>& durations) {
    const double pace = slow.paces[static_cast<std::size_t>(&step - steps.data())];
    const auto replica = static_cast<std::size_t>(slow.worker.replica);
    if (pace == 1) return;
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      if (one.rank == slow.worker.rank)
        durations[replica][id] = std::llround(static_cast<double>(durations[replica][id]) / pace);
    });
  };
}

}  // namespace bubblescope::inline sim
