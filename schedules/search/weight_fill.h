// Placement of W's in a given order of a rank's F's and I's.
#pragma once

#include <optional>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// Per rank chunks * microbatches * 2 tokens, concatenated: F and I, no W.
using Skeleton = std::vector<Token>;

/// Adds the W's, oldest first: into every wait that is long enough, where the cap requires memory,
/// and at the end. A W that would delay the next F or I runs only if waiting would make the rank's
/// idle time longer than `idle_budget`. Empty if the skeleton blocks or exceeds a cap. O(ops).
std::optional<TokenOrder> fill_weights(const SearchProblem& problem, const Skeleton& skeleton,
                                       Nanos idle_budget);

}  // namespace bubblescope::schedules
