// Rounds times for people.
#include "traces/text/time_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "traces/text/wording.h"

namespace bubblescope::traces {

namespace {

constexpr TimeUnit kNanosecond{"ns", 1};
constexpr TimeUnit kMicrosecond{"us", 1'000};
constexpr TimeUnit kMillisecond{"ms", 1'000'000};
constexpr TimeUnit kSecond{"s", 1'000'000'000};
constexpr int kMaxDecimals = 3;

bool is_exact(Nanos time, TimeUnit unit, int decimals) {
  Nanos step = unit.nanos;
  for (int at = 0; at < decimals; ++at) step /= 10;
  return step <= 1 || time % step == 0;
}

}  // namespace

TimeUnit choose_unit(Nanos span) {
  if (span >= 10 * kSecond.nanos) return kSecond;
  for (const TimeUnit unit : {kMillisecond, kMicrosecond})
    if (span >= unit.nanos) return unit;
  return kNanosecond;
}

std::string format_in_unit(Nanos time, TimeUnit unit, int decimals) {
  return fmt::format("{:.{}f}", static_cast<double>(time) / static_cast<double>(unit.nanos),
                     decimals);
}

int choose_decimals(const std::vector<Nanos>& times, TimeUnit unit) {
  const Nanos longest = times.empty() ? 0 : *std::max_element(times.begin(), times.end());
  int enough = kMaxDecimals;  // four digits of the longest time
  for (Nanos digits = longest / unit.nanos; digits >= 10 && enough > 0; digits /= 10) --enough;
  for (int decimals = 0; decimals < enough; ++decimals)
    if (std::all_of(times.begin(), times.end(),
                    [&](Nanos time) { return is_exact(time, unit, decimals); }))
      return decimals;
  return enough;
}

std::string format_time(Nanos duration) {
  if (duration == 0) return "0 ms";
  TimeUnit unit = kNanosecond;
  for (const TimeUnit larger : {kMicrosecond, kMillisecond, kSecond})
    if (std::abs(duration) >= larger.nanos) unit = larger;
  const int decimals = choose_decimals({std::abs(duration)}, unit);
  return trim_zeros(format_in_unit(duration, unit, decimals)) + " " + std::string(unit.name);
}

Nanos choose_tick_step(Nanos min_step) {
  for (Nanos decade = 1;; decade *= 10)
    for (const Nanos step : {decade, 2 * decade, 5 * decade})
      if (step >= min_step) return step;
}

}  // namespace bubblescope::traces
