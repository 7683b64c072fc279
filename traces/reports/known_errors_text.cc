// Writes a sentence about the nearest published runs.
#include "traces/reports/known_errors_text.h"

#include <fmt/format.h>

#include <cmath>

namespace bubblescope::traces {

namespace {

/// How much longer than predicted a run took, in whole percent; negative if it was shorter.
int longer_percent(double error) { return static_cast<int>(std::lround(100 / (1 + error) - 100)); }

std::string range_text(int low, int high) {
  return low == high ? fmt::format("{} %", low) : fmt::format("{} to {} %", low, high);
}

std::string describe_errors(const KnownErrors& errors) {
  const std::string under = errors.runtime.empty() ? "" : fmt::format(" under {}", errors.runtime);
  const std::string in = errors.precision.empty() ? "" : fmt::format(" in {}", errors.precision);
  const std::string runs = fmt::format(
      "nine in ten published runs like it ({} of {} models on {}{}{}, and wider classes)",
      errors.runs, errors.experts ? "expert" : "dense",
      std::string(errors.generation.empty() ? "all" : errors.generation) + " devices", under, in);
  const int least = longer_percent(errors.highest);
  const int most = longer_percent(errors.lowest);
  if (errors.highest < 0)
    return fmt::format("{} took longer than predicted, by {}", runs, range_text(least, most));
  if (errors.lowest > 0)
    return fmt::format("{} took less time than predicted, by {}", runs, range_text(-most, -least));
  return fmt::format("{} took between {} % less and {} % more time than predicted", runs, -least,
                     most);
}

}  // namespace

std::string known_errors_text(const KnownErrors& errors, const std::string& unpublished_schedule) {
  const std::string text = describe_errors(errors);
  if (unpublished_schedule.empty()) return text;
  return text + "; none of them had the schedule " + unpublished_schedule;
}

}  // namespace bubblescope::traces
