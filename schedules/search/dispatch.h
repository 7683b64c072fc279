// A list scheduler: advances through time and lets every free rank choose its next op.
#pragma once

#include <optional>
#include <vector>

#include "schedules/search/weight_fill.h"

namespace bubblescope::schedules {

/// The rule by which a free rank chooses its next op.
struct DispatchRule {
  std::vector<Token> preference;  ///< F and I tokens, the most wanted first; W only fills
  /// The total time that a rank may idle rather than let a W, or a less wanted op, delay a wanted
  /// one.
  Nanos idle_budget = 0;
  bool wait_for_wanted = false;    ///< whether a less wanted op counts as a delay
  std::int32_t max_in_flight = 0;  ///< maximum micro-batches between F and I on any stage
  /// [(stage * kSteps + step) * microbatches + n]: its position in a skeleton. If given, the
  /// earliest position is the most wanted, and an op runs at most `window` positions before its
  /// turn.
  std::vector<std::int32_t> turn;
  std::int32_t window = 0;
};

/// Returns the `turn` of every F and I of a skeleton.
std::vector<std::int32_t> turns(const SearchProblem& problem, const Skeleton& skeleton);

/// An order within the caps. An F starts only if one micro-batch could still finish after it, so
/// caps of at least min_cap() never block. Empty if they do.
std::optional<TokenOrder> dispatch(const SearchProblem& problem, const DispatchRule& rule);

}  // namespace bubblescope::schedules
