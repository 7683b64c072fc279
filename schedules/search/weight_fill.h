// Where the W go, when the order of a rank's F and I is given.
#pragma once

#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope {

/// Per rank chunks * microbatches * 2 tokens, one rank after the other: F and I, no W.
using Skeleton = std::vector<Token>;

/// Adds the W, oldest first: into every wait that is long enough, where the cap asks for room, and
/// at the end. A W that would delay the next F or I is run only when waiting instead would make the
/// rank's idle time longer than `idle_budget`. Empty when the skeleton blocks or needs more than a
/// cap. O(ops).
std::optional<TokenOrder> fill_weights(const SearchProblem& problem, const Skeleton& skeleton,
                                       Nanos idle_budget);

}  // namespace bubblescope
