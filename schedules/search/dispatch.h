// A list scheduler: goes through time and lets every free rank choose its next op.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope {

/// How a free rank chooses.
struct DispatchRule {
  std::vector<Token> preference;  ///< F and I tokens, the most wanted first; W only fill
  /// How long a rank may stand idle in all rather than let a W, or a less wanted op, delay one.
  Nanos idle_budget = 0;
  bool wait_for_wanted = false;     ///< whether a less wanted op counts as a delay
  std::int32_t most_in_flight = 0;  ///< micro-batches between F and I on any stage
  /// [(stage * kSteps + step) * microbatches + n]: its place in a skeleton; where given, the
  /// earliest place is the most wanted, and an op runs at most `window` places before its turn.
  std::vector<std::int32_t> turn;
  std::int32_t window = 0;
};

/// The `turn` of every F and I of a skeleton.
std::vector<std::int32_t> turns(const SearchProblem& problem, const Skeleton& skeleton);

/// An order within the caps; an F is only started where one micro-batch could still finish behind
/// it, so caps of at least least_cap() never block. Empty if they do. O(ops * ranks).
std::optional<TokenOrder> dispatch(const SearchProblem& problem, const DispatchRule& rule);

}  // namespace bubblescope
