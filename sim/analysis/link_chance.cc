// Counts far messages of a link and of all.
#include "sim/analysis/link_chance.h"

#include <algorithm>
#include <cmath>

#include "sim/ir/quantile.h"

namespace bubblescope::inline sim {

namespace {

constexpr double kMaxChance = 0.05;

/// [n]: the logarithm of n!
std::vector<double> list_log_factorials(std::size_t largest) {
  std::vector<double> logs(largest + 1, 0);
  for (std::size_t n = 1; n <= largest; ++n)
    logs[n] = logs[n - 1] + std::log(static_cast<double>(n));
  return logs;
}

/// The chance that at least `found` of `drawn` messages are far, if `far` of all `count` are.
double find_chance_of(std::size_t found, std::size_t drawn, std::size_t far, std::size_t count) {
  const std::vector<double> log_factorial = list_log_factorials(count);
  const auto log_choices = [&](std::size_t of, std::size_t chosen) {
    return log_factorial[of] - log_factorial[chosen] - log_factorial[of - chosen];
  };
  double chance = 0;
  for (std::size_t own = found; own <= std::min(drawn, far); ++own)
    if (drawn - own <= count - far)
      chance += std::exp(log_choices(far, own) + log_choices(count - far, drawn - own) -
                         log_choices(count, drawn));
  return chance;
}

}  // namespace

bool differs_beyond_chance(const std::vector<Nanos>& own, const std::vector<Nanos>& all,
                           std::size_t links) {
  const auto time = static_cast<double>(quantile(own, 50));
  const auto usual = static_cast<double>(quantile(all, 50));
  const double middle = std::sqrt(time * usual);
  const auto count_far = [&](const std::vector<Nanos>& times) {
    return static_cast<std::size_t>(std::count_if(times.begin(), times.end(), [&](Nanos one) {
      const auto own_time = static_cast<double>(one);
      return time > usual ? own_time > middle : own_time <= middle;
    }));
  };
  // One of the links is compared with the others, and may be above or below them.
  const auto comparisons = 2 * static_cast<double>(std::max<std::size_t>(links, 2) - 1);
  return comparisons * find_chance_of(count_far(own), own.size(), count_far(all), all.size()) <
         kMaxChance;
}

}  // namespace bubblescope::inline sim
