// Compares the relative times of all workers in all steps.
#include "sim/analysis/slow_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <numeric>
#include <utility>

#include "sim/analysis/relative_times.h"
#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kSlowRelativeTime = 1.1;
constexpr double kOutside = 4;  ///< in robust standard deviations
constexpr std::size_t kMinSteps = 4;
constexpr std::size_t kMinStepsOfTrend = 6;
constexpr double kGrown = 1.05;       ///< from the first to the last step
constexpr double kRankOrder = 0.9;    ///< Spearman's correlation of relative times with steps
constexpr std::size_t kQuarter = 25;  ///< of the workers: fewer may be fast in a slow step

using Table = std::vector<std::vector<double>>;  ///< [worker][step]; workers by replica and rank

/// Returns the computing time of every worker in every step.
Table sum_times(std::span<const ReplicatedStep> steps,
                std::span<const Counterfactual> counterfactuals) {
  const auto ranks = static_cast<std::size_t>(steps.front().front().program.ranks);
  Table times(steps.front().size() * ranks, std::vector<double>(steps.size(), 0));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const std::vector<Durations> durations = apply_counterfactuals(steps, step, counterfactuals);
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

/// Returns the relative time from which a step is unusually slow, judged by the usual spread.
double find_min_unusual(const Table& relative_times) {
  std::vector<double> sizes;
  for (const std::vector<double>& of_worker : relative_times)
    for (const double relative_time : of_worker)
      sizes.push_back(std::abs(std::log(std::max(relative_time, kMinRelativeTime))));
  return std::exp(kOutside * robust_deviation(std::move(sizes)));
}

/// Returns Spearman's correlation of some values with their order.
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

/// A straight line through the logarithms of relative times.
struct Growth {
  double first = 1;
  double last = 1;
};

Growth fit_growth(const std::vector<double>& relative_times) {
  const double middle = (static_cast<double>(relative_times.size()) - 1) / 2;
  double mean = 0;
  double product = 0;
  double square = 0;
  for (std::size_t step = 0; step < relative_times.size(); ++step) {
    const double apart = static_cast<double>(step) - middle;
    const double log = std::log(std::max(relative_times[step], kMinRelativeTime));
    mean += log / static_cast<double>(relative_times.size());
    product += apart * log;
    square += apart * apart;
  }
  const double rise = product / square * middle;
  return {std::exp(mean - rise), std::exp(mean + rise)};
}

double lost(const SlowSteps& one) {
  return std::accumulate(one.relative_times.begin(), one.relative_times.end(), 0.0) -
         static_cast<double>(one.relative_times.size());
}

std::int64_t count_above(const std::vector<double>& relative_times, double min_relative_time) {
  return std::count_if(relative_times.begin(), relative_times.end(),
                       [=](double relative_time) { return relative_time > min_relative_time; });
}

/// Divides the relative times by the first step's, if they grow from step to step.
void follow_growth(SlowSteps& slow) {
  if (slow.relative_times.size() < kMinStepsOfTrend ||
      correlate_with_order(slow.relative_times) < kRankOrder)
    return;
  const Growth growth = fit_growth(slow.relative_times);
  if (growth.last < kGrown * growth.first) return;
  slow.grows = true;
  slow.factor = growth.last / growth.first;
  for (double& relative_time : slow.relative_times)
    relative_time = std::max(1.0, relative_time / growth.first);
  slow.steps = count_above(slow.relative_times, 1 + (kGrown - 1) / 2);
}

/// Where a worker is slow in most steps, its usual time is the slow one: divides by the relative
/// time of the few fast steps, if there are two or more.
std::vector<double> relative_to_fast(std::vector<double> relative_times, double min_relative_time) {
  std::vector<double> fast;
  for (const double relative_time : relative_times)
    if (relative_time < 1 / min_relative_time) fast.push_back(relative_time);
  if (fast.size() < 2) return relative_times;
  const double usual = quantile(std::move(fast), 50);
  for (double& relative_time : relative_times) relative_time /= usual;
  return relative_times;
}

}  // namespace

std::vector<SlowSteps> find_slow_steps(std::span<const ReplicatedStep> steps,
                                       std::span<const Counterfactual> counterfactuals) {
  const auto ranks = static_cast<std::size_t>(steps.front().front().program.ranks);
  if (steps.size() < kMinSteps || ranks < 2) return {};
  const Table relative_times =
      relate_to_ranks(relative_to_usual(sum_times(steps, counterfactuals)), ranks);
  const double min_relative_time = std::max(kSlowRelativeTime, find_min_unusual(relative_times));
  std::vector<SlowSteps> found;
  for (std::size_t worker = 0; worker < relative_times.size(); ++worker) {
    SlowSteps slow{
        {static_cast<std::int32_t>(worker / ranks), static_cast<std::int32_t>(worker % ranks)}};
    slow.relative_times = relative_times[worker];
    follow_growth(slow);
    if (slow.grows) {
      found.push_back(std::move(slow));
      continue;
    }
    slow.relative_times = relative_to_fast(relative_times[worker], min_relative_time);
    slow.steps = count_above(slow.relative_times, min_relative_time);
    if (slow.steps == 0 || slow.steps == std::ssize(steps)) continue;
    double sum = 0;
    for (double& relative_time : slow.relative_times) {
      if (relative_time <= min_relative_time) relative_time = 1;
      sum += relative_time;
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
                                       std::span<const Counterfactual> counterfactuals) {
  CommonSlowSteps slow;
  if (steps.size() < 2) return slow;
  const Table relative = relative_to_usual(sum_times(steps, counterfactuals));
  Table of_steps(steps.size());  // [step][worker]
  std::vector<double> medians;   // [step]
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (const std::vector<double>& of_worker : relative) of_steps[step].push_back(of_worker[step]);
    medians.push_back(quantile(of_steps[step], 50));
  }
  const double min_relative_time = std::max(kSlowRelativeTime, find_min_unusual({medians}));
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    if (quantile(of_steps[step], kQuarter) <= min_relative_time) {
      of_steps[step].clear();
      continue;
    }
    ++slow.steps;
    sum += medians[step];
    last = step;
  }
  if (slow.steps == 0) return slow;
  slow.relative_times = std::move(of_steps);
  slow.factor = sum / static_cast<double>(slow.steps);
  slow.are_first = static_cast<std::int64_t>(last) + 1 == slow.steps;
  return slow;
}

Counterfactual with_usual_time(const CommonSlowSteps& slow) {
  return [slow](std::size_t at, const ReplicatedStep& step, std::vector<Durations> durations) {
    const std::vector<double>& relative_times = slow.relative_times[at];
    if (relative_times.empty()) return durations;
    const std::size_t ranks = relative_times.size() / step.size();
    for (std::size_t replica = 0; replica < step.size(); ++replica)
      step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
        const double relative_time =
            relative_times[replica * ranks + static_cast<std::size_t>(one.rank)];
        if (relative_time > 0)
          durations[replica][id] =
              std::llround(static_cast<double>(durations[replica][id]) / relative_time);
      });
    return durations;
  };
}

Counterfactual with_usual_time(const SlowSteps& slow) {
  return [slow](std::size_t at, const ReplicatedStep& step, std::vector<Durations> durations) {
    const double relative_time = slow.relative_times[at];
    const auto replica = static_cast<std::size_t>(slow.worker.replica);
    if (relative_time == 1) return durations;
    step[replica].for_each_compute([&](InstructionId id, const Instruction& one) {
      if (one.rank == slow.worker.rank)
        durations[replica][id] =
            std::llround(static_cast<double>(durations[replica][id]) / relative_time);
    });
    return durations;
  };
}

}  // namespace bubblescope::inline sim
