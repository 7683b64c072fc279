// Runs the order search for `search`, and predicts its result.
#pragma once

#include <cstdint>
#include <optional>

#include "schedules/search/schedule_search.h"
#include "tools/inputs/predict.h"

namespace bubblescope::tools {

/// Effort is counted in ops, so that the result does not depend on the load of the machine. A slow
/// core evaluates this many per second; on faster ones the search ends before its time.
inline constexpr std::int64_t kOpsPerSecond = 10'000'000;
inline constexpr Nanos kTimeLimit = 10'000'000'000;

struct SearchOptions {
  PredictInputs inputs;
  schedules::PlacementChoice placement = schedules::PlacementChoice::kLinear;
  schedules::Objective objective = schedules::Objective::kMakespan;
  std::optional<Nanos> time_limit;
  std::optional<std::int64_t> effort;  ///< in timed ops, without a time limit
  std::uint64_t seed = 1;
};

struct FoundStep {
  schedules::FoundSchedule found;
  TimedStep step;
};

/// Searches for a schedule and predicts its step. If the step fits only with smaller gradients,
/// whose costs differ, searches again with those; if that result needs yet others, fixes those of
/// the search in `options.inputs` and searches a last time. Throws Error where there is no such
/// schedule.
FoundStep search_and_predict(SearchOptions& options);

}  // namespace bubblescope::tools
