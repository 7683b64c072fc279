// Known orders: the registered schedules as starting points of a search.
#pragma once

#include <vector>

#include "schedules/search/search_problem.h"

namespace bubblescope::schedules {

/// The orders of all registered schedules that have the problem's placement, keep micro-batches in
/// order and can be built for the request's shape. If the problem splits backwards and a schedule
/// does not, W follows I at once, and vice versa. Excludes searched schedules.
std::vector<TokenOrder> collect_known_orders(const SearchProblem& problem,
                                             const ScheduleRequest& request);

}  // namespace bubblescope::schedules
